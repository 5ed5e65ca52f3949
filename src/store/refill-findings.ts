/** Fills the history of findings from the files of earlier runs. */
import type { Finding } from '../core/model.ts'
import { parseFindingLine } from './finding-line.ts'
import { choosePastFiles, type PastFile, pacedLines } from './past-files.ts'
import type { RefillOptions } from './refill.ts'

const MAX_INPUT_BYTES = 16 * 1024 * 1024
const HOUR_MS = 3_600_000

export interface FindingsRefillable {
  startFilling(): { add(finding: Finding): void; end(): void }
}

export interface FindingsRefillOutcome {
  readonly files: number
  readonly findings: number
  /** What could not be read. */
  readonly faults: readonly string[]
}

/** Reads the oldest file first, so that every end comes after its start; never rejects. */
export async function refillFindings(
  history: FindingsRefillable,
  dir: string,
  { now, hours, signal }: RefillOptions,
): Promise<FindingsRefillOutcome> {
  const since = now - hours * HOUR_MS
  const faults: string[] = []
  let findings = 0
  const files = await choosePastFiles(dir, 'findings', since, MAX_INPUT_BYTES).catch((error: Error): PastFile[] => {
    faults.push(`${dir}: ${error.message}`)
    return []
  })
  const filling = history.startFilling()
  for (const file of files.toReversed()) {
    if (signal?.aborted) break
    try {
      for await (const line of pacedLines(file)) {
        if (signal?.aborted) break
        const finding = parseFindingLine(line)
        if (finding === null || finding.at < since || finding.at >= now) continue
        filling.add(finding)
        findings++
      }
    } catch (error) {
      faults.push(`${file.name}: ${(error as Error).message}`)
    }
  }
  filling.end()
  return { files: files.length, findings, faults }
}
