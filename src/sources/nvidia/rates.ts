/** From a counter that only grows to a rate. */
import type { Reading } from '../../core/model.ts'

export class CounterRate {
  #value: Reading = null
  #atMs = 0

  /** Units per second since the last reading; null at first, after a gap, and when the counter went backwards (reset or wrapped). */
  update(value: Reading, monotonicMs: number): Reading {
    const before = this.#value
    const elapsedMs = monotonicMs - this.#atMs
    this.#value = value
    this.#atMs = monotonicMs
    if (value === null || before === null || value < before || elapsedMs <= 0) return null
    return ((value - before) * 1000) / elapsedMs
  }
}
