/** How often forecasts were right on this machine, from the findings in the log. */
import { logLane } from '../core/disk-lane.ts'
import { type ForecastAccuracy, ForecastTally } from '../report/forecast-accuracy.ts'
import { refillFindings } from '../store/refill-findings.ts'

export const ACCURACY_DAYS = 30
const KEPT_MS = 60_000

export interface ReadAccuracy {
  readonly accuracy: ForecastAccuracy
  readonly files: number
  readonly faults: readonly string[]
}

export async function readAccuracy(dir: string, days: number, now: number): Promise<ReadAccuracy> {
  const tally = new ForecastTally()
  const keep = {
    startFilling: () => ({ add: (finding: Parameters<ForecastTally['accept']>[0]) => tally.accept(finding), end: () => undefined }),
  }
  const { files, faults } = await refillFindings(keep, dir, { now, hours: days * 24 })
  return { accuracy: tally.accuracy(), files, faults }
}

/** For a page that asks again and again: the log is read once a minute at most, by one reader. */
export function accuracyReader(dir: string, now: () => number): () => Promise<ForecastAccuracy> {
  let last: { readonly at: number; readonly read: Promise<ForecastAccuracy> } | null = null
  return () => {
    const at = now()
    if (last === null || at - last.at >= KEPT_MS || at < last.at)
      last = { at, read: logLane.patiently(() => readAccuracy(dir, ACCURACY_DAYS, at)).then(({ accuracy }) => accuracy) }
    const { read } = last
    // What failed is tried again at the next question.
    read.catch(() => {
      if (last?.read === read) last = null
    })
    return read
  }
}
