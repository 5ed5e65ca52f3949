/** How many messages a channel may send: a burst at once, then so many an hour. The last few are kept for what is critical. */
export class TokenBucket {
  readonly #burst: number
  readonly #perMs: number
  readonly #reserve: number
  #tokens: number
  #ms = 0

  constructor(perHour: number, burst: number) {
    this.#burst = burst
    this.#perMs = perHour / 3_600_000
    this.#reserve = Math.floor(burst / 4)
    this.#tokens = burst
  }

  /** Takes one when there is one. `nowMs` is observed time, which does not jump. */
  take(nowMs: number, isCritical: boolean): boolean {
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, nowMs - this.#ms) * this.#perMs)
    this.#ms = nowMs
    if (this.#tokens < 1 + (isCritical ? 0 : this.#reserve)) return false
    this.#tokens--
    return true
  }
}
