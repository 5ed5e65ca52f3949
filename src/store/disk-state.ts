import { formatAge } from '../core/format.ts'
import type { Log } from '../core/kinds.ts'
import type { Gap } from './lines.ts'

/** Whether the disk can be written, and what was lost while it could not. Logs a change once, not every failed attempt. */
export class DiskState {
  readonly #dir: string
  readonly #log: Log
  readonly #now: () => number
  #since: number
  #reason: string | null = null
  #gap: Gap | null = null
  #gapCount = 0
  #dropped = 0
  #lastLoss: string | null = null

  constructor(dir: string, log: Log, now: () => number) {
    this.#dir = dir
    this.#log = log
    this.#now = now
    this.#since = now()
  }

  get reason(): string | null {
    return this.#reason
  }

  get since(): number {
    return this.#since
  }

  get gapCount(): number {
    return this.#gapCount
  }

  get dropped(): number {
    return this.#dropped
  }

  get lastLoss(): string | null {
    return this.#lastLoss
  }

  /** A call that has not returned: not failed, and not to be repeated before it does. */
  stuckFor(waitedMs: number): void {
    const since = this.#now() - Math.round(waitedMs)
    this.failed(`the disk of ${this.#dir} does not answer, since ${new Date(since).toISOString()}`, since)
  }

  failed(fault: Error | string, since = this.#now()): void {
    const reason = typeof fault === 'string' ? fault : explainFault(fault, this.#dir)
    if (this.#reason === null) {
      this.#since = since
      this.#log.error(
        { dir: this.#dir, ...(typeof fault === 'string' ? {} : { err: fault }) },
        `the log cannot be written: ${reason}; monitoring continues, lines wait in memory, and writing will be tried again`,
      )
    }
    this.#reason = reason
  }

  succeeded(): void {
    if (this.#reason === null) return
    const lastedMs = this.#now() - this.#since
    this.#log.info(
      { dir: this.#dir, seconds: Math.round(lastedMs / 1000), dropped: this.#gap?.dropped ?? 0 },
      `the log is being written again after ${formatAge(lastedMs)}`,
    )
    this.#reason = null
    this.#since = this.#now()
  }

  /** A line that had to make room for newer ones. */
  lineDropped(at: number): void {
    this.#dropped += 1
    this.lost(at, at, 1, this.#reason ?? 'the disk was slower than the samples')
  }

  lost(from: number, to: number, lines: number, reason: string): void {
    this.#lastLoss = reason
    if (!this.#gap) {
      this.#gap = { from, to, dropped: lines, reason }
      this.#gapCount += 1
      return
    }
    this.#gap.from = Math.min(this.#gap.from, from)
    this.#gap.to = Math.max(this.#gap.to, to)
    this.#gap.dropped += lines
  }

  /** What was lost and is not recorded yet; the caller writes it. */
  takeGap(): Gap | null {
    const gap = this.#gap
    this.#gap = null
    return gap
  }
}

export function explainFault(fault: NodeJS.ErrnoException, dir: string): string {
  switch (fault.code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `no space left for ${dir} (${fault.code}): free some, or lower log.keep_total_mb`
    case 'EROFS':
      return `${dir} is on a read-only file system (${fault.code}): make it writable, or set log.dir to another folder`
    case 'EACCES':
    case 'EPERM':
      return `${dir} cannot be written by this user (${fault.code}): change its owner, or set log.dir to another folder`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${dir} is not a folder (${fault.code}): remove what is in its place, or set log.dir to another folder`
    default:
      return fault.message
  }
}
