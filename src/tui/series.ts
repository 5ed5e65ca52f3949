/** The recent past of a figure, in steps of equal length: bounded, and the same whatever the rate of the samples. */

const CAPACITY = 600

export class Series {
  readonly #values = new Float32Array(CAPACITY).fill(Number.NaN)
  #stepMs: number
  /** Number of the newest step: its time divided by the length of a step. */
  #newest = -1
  #oldest = -1
  #sum = 0
  #count = 0

  constructor(stepMs: number) {
    this.#stepMs = stepMs
  }

  get stepMs(): number {
    return this.#stepMs
  }

  /** The mean of what comes within a step. A clock that was set back starts over. */
  push(at: number, value: number | null): void {
    const step = Math.floor(at / this.#stepMs)
    if (step < this.#newest - 1 || this.#newest < 0) {
      this.clear()
      this.#newest = step
      this.#oldest = step
    } else if (step > this.#newest) {
      for (let skipped = Math.max(this.#newest + 1, step - CAPACITY); skipped <= step; skipped++)
        this.#values[skipped % CAPACITY] = Number.NaN
      // One missing step is the jitter of a clock and not a gap.
      if (step === this.#newest + 2 && value !== null) this.#values[(step - 1) % CAPACITY] = value
      this.#newest = step
      this.#oldest = Math.max(this.#oldest, step - CAPACITY + 1)
      this.#sum = 0
      this.#count = 0
    }
    if (value === null || Number.isNaN(value)) return
    this.#sum += value
    this.#count++
    this.#values[this.#newest % CAPACITY] = this.#sum / this.#count
  }

  /** The last `length` steps, oldest first; NaN is a gap. */
  tail(length: number): Float32Array {
    const count = this.#newest < 0 ? 0 : Math.min(length, this.#newest - this.#oldest + 1)
    const out = new Float32Array(count)
    for (let index = 0; index < count; index++) out[index] = this.#values[(this.#newest - count + 1 + index) % CAPACITY] ?? Number.NaN
    return out
  }

  /** 1 when the newest step begins a pair; see graphRows. */
  get phase(): number {
    return this.#newest < 0 ? 0 : (this.#newest + 1) % 2
  }

  clear(): void {
    this.#values.fill(Number.NaN)
    this.#newest = -1
    this.#oldest = -1
    this.#sum = 0
    this.#count = 0
  }
}
