import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import { type ForecastAccuracy, type ForecastRow, ForecastTally } from '../report/forecast-accuracy.ts'
import { refillFindings } from '../store/refill-findings.ts'
import { writeOut } from './output.ts'
import { alignColumns } from './table.ts'

const DEFAULT_DAYS = 30

export async function accuracy({ values }: Config, options: Record<string, unknown>): Promise<number> {
  const days = options.days === undefined ? DEFAULT_DAYS : Number(options.days)
  if (!(days > 0)) throw new Failure(`--days: expected a number above 0; got ${JSON.stringify(options.days)}`, { exitCode: EXIT.usage })
  const tally = new ForecastTally()
  const keep = {
    startFilling: () => ({ add: (finding: Parameters<ForecastTally['accept']>[0]) => tally.accept(finding), end: () => undefined }),
  }
  const dir = values['log.dir']
  const { files, faults } = await refillFindings(keep, dir, { now: Date.now(), hours: days * 24 })
  for (const fault of faults) process.stderr.write(`gpuwarden: ${fault}\n`)
  if (files === 0)
    throw new Failure(`${dir}: no findings were recorded there`, {
      exitCode: EXIT.noSource,
      hint: 'Give the log folder of an agent with --log-dir.',
    })
  const found = tally.accuracy()
  await writeOut(options.json === true ? `${JSON.stringify(jsonOf(found, days), null, 2)}\n` : textOf(found, days))
  return EXIT.ok
}

function jsonOf({ rows, outOfMemory, withoutWarning }: ForecastAccuracy, days: number) {
  return {
    days,
    out_of_memory: outOfMemory,
    without_warning: withoutWarning,
    detectors: rows.map((row) => ({
      detector: row.detector,
      forecasts: row.forecasts,
      came_true: row.cameTrue,
      did_not_happen: row.didNotHappen,
      unknown: row.unknown,
      open: row.open,
      median_lead_seconds: row.medianLeadSeconds,
      median_error_seconds: row.medianErrorSeconds,
    })),
  }
}

function textOf({ rows, outOfMemory, withoutWarning }: ForecastAccuracy, days: number): string {
  const head = `Forecasts of the last ${days} days\n`
  const deaths =
    outOfMemory === 0 ? 'No run ran out of memory.' : `${outOfMemory} runs ran out of memory, ${withoutWarning} of them without a warning.`
  if (rows.length === 0) return `${head}\nNothing was forecast. ${deaths}\n`
  const titles = ['detector', 'forecasts', 'came true', 'did not happen', 'not known', 'open', 'right', 'lead', 'error']
  const table = alignColumns([titles, ...rows.map(cells)])
  return `${head}\n${table.join('\n')}\n\n${deaths}\n`
}

function cells(row: ForecastRow): string[] {
  const judged = row.cameTrue + row.didNotHappen
  const seconds = (value: number | null) => (value === null ? '–' : formatDuration(value * 1000))
  return [
    row.detector,
    ...[row.forecasts, row.cameTrue, row.didNotHappen, row.unknown, row.open].map(String),
    judged === 0 ? '–' : formatPercent(row.cameTrue / judged),
    seconds(row.medianLeadSeconds),
    seconds(row.medianErrorSeconds),
  ]
}
