/**
 * Reads a recording (see record.ts) as samples in time order, streaming, in bounded memory.
 * - All files are merged by timestamp; a file is opened when its first line is due, so rotated files and several ranks work.
 * - A line up to REORDER_LINES late is moved to its place; a later one comes where it is, with its own time, and counts as `late`.
 * - Unusable lines are skipped and counted by file and reason.
 * - Slow readings are carried per GPU (`slowAt`); processes of `gpu_metrics` lines become `processes` of a HostSample when they change.
 */
import type { GpuInfo, Sample } from '../model.ts'
import { type FileStats, RecordingCursor, type RecordingLine } from './cursor.ts'
import { DeviceRoster, type VendorOfModel } from './devices.ts'
import { findRecordingFiles, RECORDING_KINDS, recordingName } from './file.ts'
import { SlowCarry } from './gpu.ts'
import { HostMerge } from './host.ts'
import type { SkipReason } from './json.ts'
import { UNKNOWN_VENDOR } from './line.ts'

export { type GpuLine, parseGpuLine, replayGpuId, SlowCarry } from './gpu.ts'
export type { LineInput, Parsed, SkipReason } from './json.ts'
export { parseTimestamp } from './json.ts'
export { type DeviceLine, parseDeviceLine, parseEventLine, parseHostLine, parseStepLine } from './line.ts'

/** One moment. */
export interface RecordingItem {
  readonly at: number
  readonly samples: readonly Sample[]
  /** So far; a new array object means a change. */
  readonly devices: readonly GpuInfo[]
}

export interface RecordingStats {
  readonly lines: number
  /** Unused lines by reason, over all files. */
  readonly skipped: Readonly<Partial<Record<SkipReason, number>>>
  /** Lines that came after newer ones and were used anyway. */
  readonly late: number
  readonly firstAt: number | null
  readonly lastAt: number | null
  readonly files: readonly Readonly<FileStats>[]
}

/** One pass over a recording. */
export interface Recording extends AsyncIterable<RecordingItem> {
  readonly path: string
  /** So far; complete when the iteration has ended. */
  stats(): RecordingStats
  close(): Promise<void>
}

/** `path`: a folder or a file of a recording; throws when there is none. `vendorOf`: for cards without a recorded vendor. */
export async function openRecording(path: string, vendorOf: VendorOfModel = () => UNKNOWN_VENDOR): Promise<Recording> {
  const files = await findRecordingFiles(path)
  const run = await recordingName(path)
  return new MergedRecording(
    path,
    files.map((file) => new RecordingCursor(file, run)),
    new DeviceRoster(vendorOf),
  )
}

/** Reasons and counts of unused lines as text; null: all were used. */
export function describeSkipped(stats: RecordingStats): string | null {
  const parts = stats.files.flatMap((file) => {
    const reasons = Object.entries(file.skipped).flatMap(([reason, count]) => (count > 0 ? [`${count} ${reason}`] : []))
    if (file.fault !== null) reasons.push(file.fault)
    return reasons.length === 0 ? [] : [`${file.path}: ${reasons.join(', ')}`]
  })
  return parts.length === 0 ? null : parts.join('; ')
}

class MergedRecording implements Recording {
  readonly path: string
  readonly #cursors: readonly RecordingCursor[]
  /** By due time; the last is the next. */
  readonly #waiting: RecordingCursor[]
  #active: RecordingCursor[] = []
  readonly #roster: DeviceRoster
  readonly #hosts = new HostMerge()
  readonly #slow = new SlowCarry()
  #late = 0
  #firstAt: number | null = null
  #lastAt: number | null = null

  constructor(path: string, cursors: readonly RecordingCursor[], roster: DeviceRoster) {
    this.path = path
    this.#roster = roster
    this.#cursors = cursors
    this.#waiting = cursors.toReversed().sort((a, b) => compareTimes(b.firstAt, a.firstAt))
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RecordingItem> {
    let group: Sample[] = []
    let groupAt = Number.NaN
    try {
      for (;;) {
        const cursor = this.#earliest() ?? (await this.#refill())
        const line = cursor?.peek()
        if (line === undefined || line.at !== groupAt) {
          if (!Number.isNaN(groupAt)) yield this.#close(groupAt, group)
          if (cursor === undefined || line === undefined) return
          group = []
          groupAt = line.at
        }
        cursor?.take()
        this.#note(line, group)
      }
    } finally {
      await this.close()
    }
  }

  stats(): RecordingStats {
    const skipped: Partial<Record<SkipReason, number>> = {}
    let lines = 0
    for (const { stats } of this.#cursors) {
      lines += stats.lines
      for (const [reason, count] of Object.entries(stats.skipped) as [SkipReason, number][])
        if (count > 0) skipped[reason] = (skipped[reason] ?? 0) + count
    }
    return {
      lines,
      skipped,
      late: this.#late,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      files: this.#cursors.map((cursor) => cursor.stats),
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#cursors.map((cursor) => cursor.close()))
  }

  /** undefined: more has to be read first. */
  #earliest(): RecordingCursor | undefined {
    let best: RecordingCursor | undefined
    let bestAt = Number.POSITIVE_INFINITY
    for (const cursor of this.#active) {
      const line = cursor.peek()
      if (line === undefined) return undefined
      if (line.at < bestAt || best === undefined) {
        best = cursor
        bestAt = line.at
      }
    }
    const due = this.#waiting.at(-1)
    return due !== undefined && due.firstAt <= bestAt ? undefined : best
  }

  /** undefined: the end. */
  async #refill(): Promise<RecordingCursor | undefined> {
    while (this.#active.length > 0 || this.#waiting.length > 0) {
      for (const cursor of this.#active) await cursor.fill()
      this.#active = this.#active.filter((cursor) => !cursor.exhausted)
      const earliest = this.#earliest()
      if (earliest !== undefined) return earliest
      const due = this.#waiting.pop()
      if (due !== undefined)
        this.#active = [...this.#active, due].sort((a, b) => RECORDING_KINDS.indexOf(a.stats.kind) - RECORDING_KINDS.indexOf(b.stats.kind))
    }
    return undefined
  }

  #note(line: RecordingLine, group: Sample[]): void {
    if (this.#lastAt !== null && line.at < this.#lastAt) this.#late++
    else this.#lastAt = line.at
    this.#firstAt ??= line.at
    switch (line.kind) {
      case 'device':
        this.#roster.set(line.device)
        break
      case 'host':
        this.#hosts.note(line)
        break
      case 'gpu_line':
        this.#roster.see(line)
        this.#hosts.see(line)
        group.push(this.#slow.fill(line.sample))
        break
      default:
        group.push(line)
    }
  }

  /** The host comes first: it identifies the processes. */
  #close(at: number, group: Sample[]): RecordingItem {
    const host = this.#hosts.take(at)
    if (host !== null) group.unshift(host)
    return { at, samples: group, devices: this.#roster.devices() }
  }
}

function compareTimes(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0
}
