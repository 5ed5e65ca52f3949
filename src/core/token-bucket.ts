/** Rate limit: a burst at once, then `perMs`. Time is monotonic. */
export class TokenBucket {
  readonly #burst: number
  readonly #perMs: number
  #tokens: number
  #ms = 0

  constructor(burst: number, perMs: number) {
    this.#burst = burst
    this.#perMs = perMs
    this.#tokens = burst
  }

  /** Takes one if there is one beyond those held back. */
  take(nowMs: number, heldBack = 0): boolean {
    if (this.#at(nowMs) < 1 + heldBack) return false
    this.#tokens--
    return true
  }

  /** Takes one even if there is none: then all wait longer. */
  spend(nowMs: number): void {
    this.#tokens = this.#at(nowMs) - 1
  }

  /** Until the next one; 0: there is one. */
  waitMs(nowMs: number): number {
    return Math.max(0, (1 - this.#at(nowMs)) / this.#perMs)
  }

  #at(nowMs: number): number {
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, nowMs - this.#ms) * this.#perMs)
    this.#ms = nowMs
    return this.#tokens
  }
}
