/** Fills the history from the files of earlier runs, so that a restart does not empty the charts. */
import type { GpuSample } from '../core/model.ts'
import { parseGpuLine, SlowCarry } from '../core/recording/recording.ts'
import { choosePastFiles, type PastFile, pacedLines } from './past-files.ts'

const MAX_INPUT_BYTES = 64 * 1024 * 1024
const HOUR_MS = 3_600_000
/** How our lines begin; others are parsed to find their time. */
const LINE_START = '{"timestamp":"'
const TIME_CHARS = 24

export interface Refillable {
  startFilling(): { add(sample: GpuSample): boolean; end(): void }
}

export interface RefillOptions {
  /** Epoch ms: later samples are live and are skipped. */
  readonly now: number
  readonly hours: number
  readonly signal?: AbortSignal
}

export interface RefillOutcome {
  readonly files: number
  readonly bytes: number
  readonly samples: number
  /** What could not be read. */
  readonly faults: readonly string[]
}

/** Reads the newest files first; never rejects. Live samples may come at any time meanwhile. */
export async function refillHistory(history: Refillable, dir: string, options: RefillOptions): Promise<RefillOutcome> {
  const since = options.now - options.hours * HOUR_MS
  const faults: string[] = []
  let samples = 0
  let bytes = 0
  const inputs = await choosePastFiles(dir, 'gpu_metrics', since, MAX_INPUT_BYTES).catch((error: Error): PastFile[] => {
    faults.push(`${dir}: ${error.message}`)
    return []
  })
  for (const input of inputs) {
    if (options.signal?.aborted) break
    bytes += input.bytes
    const filling = history.startFilling()
    const slow = new SlowCarry()
    try {
      for await (const line of pacedLines(input)) {
        if (options.signal?.aborted) break
        if (line.startsWith(LINE_START) && Date.parse(line.slice(LINE_START.length, LINE_START.length + TIME_CHARS)) < since) continue
        const parsed = parseGpuLine(line)
        if (typeof parsed === 'string' || parsed.at < since || parsed.at >= options.now) continue
        if (filling.add(slow.fill(parsed.sample))) samples += 1
      }
    } catch (error) {
      faults.push(`${input.name}: ${(error as Error).message}`)
    }
    filling.end()
  }
  return { files: inputs.length, bytes, samples, faults }
}
