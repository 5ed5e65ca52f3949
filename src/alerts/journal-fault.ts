/** Why alerts are not kept on disk now. A disk that does not answer is a fault like any other. */
import { journalLane, logLane } from '../core/disk-lane.ts'
import type { Log } from '../core/kinds.ts'

export class JournalFault {
  readonly #dir: string | null
  readonly #log: Log
  #reason: string | null = null
  #at = 0
  #count = 0
  #isStuck = false

  constructor(dir: string | null, log: Log) {
    this.#dir = dir
    this.#log = log
  }

  get reason(): string | null {
    return this.#reason
  }

  get count(): number {
    return this.#count
  }

  isWithin(ms: number): boolean {
    return this.#reason !== null && performance.now() - this.#at < ms
  }

  /** True while the disk does not answer: then nothing is written, and everything stays in memory. */
  noticeStuckDisk(): boolean {
    const stuck = journalLane.stuck() ?? logLane.stuck()
    if (stuck !== null && !(this.#reason !== null && this.#isStuck)) this.begin(stuck)
    this.#isStuck = stuck !== null
    return this.#isStuck
  }

  begin(error: Error): void {
    this.#count++
    this.#at = performance.now()
    if (this.#reason === null)
      this.#log.error(
        { err: error, dir: this.#dir },
        `alerts cannot be kept on disk: ${error.message}; they are delivered from memory, and a restart would lose those that are waiting`,
      )
    this.#reason = error.message
  }

  end(): void {
    if (this.#reason !== null) this.#log.info({ dir: this.#dir }, 'alerts are kept on disk again')
    this.#reason = null
  }
}
