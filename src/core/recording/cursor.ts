/** The parsed lines of one recording file in time order, with a count of unusable ones. */
import type { GpuEvent, HostSample, TrainingStep } from '../model.ts'
import { type FileFault, type LineBlock, type RecordingFile, type RecordingKind, readLines } from './file.ts'
import { type GpuLine, parseGpuLine } from './gpu.ts'
import type { Parsed, SkipReason } from './json.ts'
import { type DeviceLine, parseDeviceLine, parseEventLine, parseHostLine, parseStepLine } from './line.ts'
import { nvidiaSmiParser } from './nvidia-smi-csv.ts'

export type RecordingLine = GpuLine | DeviceLine | HostSample | GpuEvent | TrainingStep

/** How many lines late a line may be and still be moved to its place. */
export const REORDER_LINES = 64

export interface FileStats {
  readonly path: string
  readonly kind: RecordingKind
  /** Skipped ones included, blank ones not. */
  lines: number
  readonly skipped: Record<SkipReason, number>
  fault: FileFault | null
}

/** null: not a data line, such as a header. */
type LineParser = (line: string) => Parsed<RecordingLine> | null

function parserOf({ kind, format }: RecordingFile, run: string): LineParser {
  if (format === 'nvidia-smi-csv') return nvidiaSmiParser()
  switch (kind) {
    case 'gpu_metrics':
      return parseGpuLine
    case 'gpu_devices':
      return parseDeviceLine
    case 'gpu_events':
      return parseEventLine
    case 'host_metrics':
      return parseHostLine
    case 'training_metrics':
      return (line) => parseStepLine(line, run)
  }
}

export class RecordingCursor {
  readonly stats: FileStats
  readonly firstAt: number
  readonly #blocks: AsyncGenerator<LineBlock>
  readonly #parse: LineParser
  #lines: RecordingLine[] = []
  #next = 0
  /** Lines before this one are final; those after it wait for late ones. */
  #settled = 0
  #ended = false

  constructor(file: RecordingFile, run: string) {
    this.stats = {
      path: file.path,
      kind: file.kind,
      lines: 0,
      skipped: { not_json: 0, not_an_object: 0, no_timestamp: 0, wrong_type: 0, too_long: 0, torn: 0 },
      fault: null,
    }
    this.firstAt = file.firstAt
    this.#parse = parserOf(file, run)
    this.#blocks = readLines(file.path, (fault) => {
      this.stats.fault = fault
    })
  }

  /** The next line; undefined: fill() first, or the end. */
  peek(): RecordingLine | undefined {
    return this.#next < this.#settled ? this.#lines[this.#next] : undefined
  }

  take(): void {
    this.#next++
  }

  get exhausted(): boolean {
    return this.#ended && this.#next >= this.#settled
  }

  /** Reads on until there is a line to take or the file has ended. */
  async fill(): Promise<void> {
    while (this.#next >= this.#settled && !this.#ended) {
      this.#lines = this.#lines.slice(this.#next)
      this.#next = 0
      const { value: block, done } = await this.#blocks.next()
      if (done) this.#ended = true
      else this.#accept(block)
      this.#settled = this.#ended ? this.#lines.length : Math.max(0, this.#lines.length - REORDER_LINES)
    }
  }

  async close(): Promise<void> {
    this.#ended = true
    this.#settled = this.#next
    await this.#blocks.return(undefined)
  }

  #accept(block: LineBlock): void {
    const { stats } = this
    stats.lines += block.tooLong
    stats.skipped.too_long += block.tooLong
    for (const text of block.lines) {
      const line = this.#parse(text)
      if (line === null || (line === 'not_json' && text.trim() === '')) continue
      stats.lines++
      if (typeof line !== 'string') this.#place(line)
      else stats.skipped[block.open && line === 'not_json' ? 'torn' : line]++
    }
  }

  #place(line: RecordingLine): void {
    const lines = this.#lines
    let index = lines.length
    const first = Math.max(0, index - REORDER_LINES)
    while (index > first && (lines[index - 1]?.at ?? 0) > line.at) index--
    // Older than all that may still move: the clock was set back, so keep the order of the file.
    if (index === first && first > 0 && (lines[index - 1]?.at ?? 0) > line.at) index = lines.length
    if (index === lines.length) lines.push(line)
    else lines.splice(index, 0, line)
  }
}
