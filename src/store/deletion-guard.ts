/** When old files may be deleted: not while the clock may be wrong, and never many at once. */
import { MISTRUST_MS } from '../core/wall-clock.ts'

const DAY_MS = 86_400_000
/** However much is too old: a mistake is noticed before all is gone. */
export const DELETE_EVERY_MS = 60_000

export interface DeletionClock {
  readonly now: () => number
  readonly monotonicMs: () => number
  /** Since the clock was set; Infinity: never. */
  readonly sinceJumpMs: () => number
}

export class DeletionGuard {
  readonly #clock: DeletionClock
  #deletedMs = Number.NEGATIVE_INFINITY
  /** After a long pause between the last record and the start, the clock may be wrong. */
  #trustedMs: number | null = null

  constructor(clock: DeletionClock) {
    this.#clock = clock
  }

  /** Not for an hour after the clock was set, nor after a start a day or more later than the last record: it may be set back. `lastBefore`: of an earlier run. */
  isTimeTrusted(lastBefore: () => number | null): boolean {
    const { monotonicMs, now, sinceJumpMs } = this.#clock
    if (this.#trustedMs === null) {
      const before = lastBefore()
      this.#trustedMs = before !== null && now() - before > DAY_MS ? monotonicMs() + MISTRUST_MS : 0
    }
    return sinceJumpMs() >= MISTRUST_MS && monotonicMs() >= this.#trustedMs
  }

  /** Until the next file may go; 0: now. */
  waitMs(): number {
    return Math.max(0, this.#deletedMs + DELETE_EVERY_MS - this.#clock.monotonicMs())
  }

  deleted(): void {
    this.#deletedMs = this.#clock.monotonicMs()
  }
}
