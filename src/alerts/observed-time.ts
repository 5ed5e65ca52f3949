/** Time that really passed, from a clock that may jump: one step counts for a minute at most, a step back for nothing. */
const LONGEST_STEP_MS = 60_000

export interface ObservedTimeState {
  readonly ms: number
  readonly lastAt: number | null
}

export class ObservedTime {
  #ms = 0
  #lastAt: number | null = null

  get ms(): number {
    return this.#ms
  }

  /** Several sources report in turn, each with a small delay: a little back is not a jump and must not count twice. */
  advance(at: number): number {
    if (this.#lastAt === null || at < this.#lastAt - LONGEST_STEP_MS) this.#lastAt = at
    else if (at > this.#lastAt) {
      this.#ms += Math.min(at - this.#lastAt, LONGEST_STEP_MS)
      this.#lastAt = at
    }
    return this.#ms
  }

  isPast(at: number): boolean {
    return this.#lastAt !== null && at < this.#lastAt
  }

  snapshot(): ObservedTimeState {
    return { ms: this.#ms, lastAt: this.#lastAt }
  }

  restore(state: ObservedTimeState): void {
    this.#ms = state.ms
    this.#lastAt = state.lastAt
  }
}

/** The time of events. It continues when none comes: in a recording from where it is, unless that is paused or over; live with the clock. */
export class EventTime {
  #last: { readonly at: number; readonly arrivedMs: number } | null = null
  #isStill = false

  /** `observedMs`: when it arrived, in observed time. */
  note(at: number, observedMs: number): void {
    this.#last = { at, arrivedMs: observedMs }
  }

  stand(isStill: boolean, observedMs: number): void {
    if (this.#isStill && !isStill && this.#last) this.note(this.#last.at, observedMs)
    this.#isStill = isStill
  }

  now(clockNow: number, observedMs: number): number {
    if (this.#last === null) return clockNow
    return this.#isStill ? this.#last.at : this.#last.at + (observedMs - this.#last.arrivedMs)
  }
}
