/** When to sweep: with the samples while they come often enough, which costs no extra wake-up; else by a timer. */

/** How many sweep intervals pass between checks whether samples still come. */
const SELDOM = 5
const SLACK = 0.1

export class SweepClock {
  readonly #everyMs: number
  readonly #sweep: () => void
  #timer: NodeJS.Timeout
  #isLed = false
  #tickMs = Number.NEGATIVE_INFINITY
  #sweptMs = performance.now()
  #isClosed = false

  constructor(everyMs: number, sweep: () => void) {
    this.#everyMs = everyMs
    this.#sweep = sweep
    this.#timer = this.#start(everyMs)
  }

  /** A sample has come. Its findings come before the sweep. */
  noteTick(): void {
    const now = performance.now()
    const isOften = now - this.#tickMs <= (1 + 2 * SLACK) * this.#everyMs
    this.#tickMs = now
    if (now - this.#sweptMs >= (1 - SLACK) * this.#everyMs) {
      this.#sweptMs = now
      setImmediate(() => this.#isClosed || this.#sweep())
    }
    if (isOften !== this.#isLed) this.#follow(isOften)
  }

  /** A source has a problem: do not count on its samples. */
  hurry(): void {
    this.#tickMs = Number.NEGATIVE_INFINITY
    if (this.#isLed) this.#follow(false)
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  #follow(isLed: boolean): void {
    if (this.#isClosed) return
    this.#isLed = isLed
    clearInterval(this.#timer)
    this.#timer = this.#start(isLed ? SELDOM * this.#everyMs : this.#everyMs)
  }

  #start(everyMs: number): NodeJS.Timeout {
    return setInterval(() => this.#fire(), everyMs).unref()
  }

  #fire(): void {
    const now = performance.now()
    if (this.#isLed && now - this.#sweptMs <= (1 + 2 * SLACK) * this.#everyMs) return
    if (this.#isLed) this.#follow(false)
    this.#sweptMs = now
    this.#sweep()
  }
}
