/** When to tick next, on a grid that does not drift: a tick whose time has passed is skipped and counted, never queued. */
export class TickClock {
  #intervalMs: number
  readonly #startMs: number
  #tick: number
  #skipped = 0

  /** `originMs`: a point of the grid. Clocks that share it tick together, which spares wake-ups. */
  constructor(intervalMs: number, nowMs: number, originMs = nowMs) {
    this.#intervalMs = intervalMs
    this.#startMs = originMs
    this.#tick = Math.floor((nowMs - originMs) / intervalMs)
  }

  get tick(): number {
    return this.#tick
  }

  get skipped(): number {
    return this.#skipped
  }

  /** Another grid with the same origin; says how long it is until its next tick. */
  pace(intervalMs: number, nowMs: number): number {
    this.#intervalMs = intervalMs
    this.#tick = Math.floor((nowMs - this.#startMs) / intervalMs)
    return this.advance(nowMs)
  }

  /** Moves on to the next tick that lies in the future and says how long it is until then. */
  advance(nowMs: number): number {
    const passed = Math.floor((nowMs - this.#startMs) / this.#intervalMs)
    const next = Math.max(this.#tick + 1, passed + 1)
    this.#skipped += next - this.#tick - 1
    this.#tick = next
    return Math.max(0, this.#startMs + next * this.#intervalMs - nowMs)
  }
}
