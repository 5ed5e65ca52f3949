/** Which tier a call belongs to, by what it costs here: some cards take milliseconds for what others do in microseconds. */

const WINDOW = 9
const ENOUGH = 5
const DEAR_MS = 1
const CHEAP_MS = 0.5

/** Between expensive and cheap it stays where it is, so that it does not flip back and forth. */
export class AdaptiveTier {
  readonly #clock: () => number
  readonly #durationsMs: number[] = []
  #slow = false

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  /** true: only in the slow tier from now on. */
  get slow(): boolean {
    return this.#slow
  }

  measure<T>(call: () => T): T {
    const start = this.#clock()
    const result = call()
    this.#note(this.#clock() - start)
    return result
  }

  #note(elapsedMs: number): void {
    const durations = this.#durationsMs
    durations.push(elapsedMs)
    if (durations.length > WINDOW) durations.shift()
    if (durations.length < ENOUGH) return
    const limit = this.#slow ? CHEAP_MS : DEAR_MS
    let above = 0
    for (const one of durations) if (one > limit) above++
    // More than half above the limit: so is the median.
    this.#slow = above * 2 > durations.length
  }
}
