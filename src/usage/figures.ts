/** Rows added up, and what people read of them. */
import type { Reading } from '../core/model.ts'
import type { PriceOf } from './prices.ts'
import { addSums, type Sums, type UsageRow, zeroSums } from './row.ts'

/** In hours; null: not known. */
export interface Figures {
  /** GPU-hours. */
  readonly gpuHours: number
  readonly busyHours: Reading
  /** Utilization of the held time for which it is known. */
  readonly busyRatio: Reading
  readonly smHours: Reading
  readonly smRatio: Reading
  readonly memoryGibHours: number
  readonly energyKwh: Reading
  readonly cost: Reading
  readonly idleHours: number
  readonly throttledHours: number
  readonly lostOomHours: number
  readonly lostDeadHours: number
}

export class Tally {
  readonly #sums: Sums = zeroSums()
  #cost: Reading = null
  isEstimate = false

  /** `priceOf` null: free time costs nothing. */
  add(row: UsageRow, priceOf: PriceOf | null): void {
    addSums(this.#sums, row)
    const price = priceOf?.(row.card) ?? null
    if (price === null) return
    this.#cost = (this.#cost ?? 0) + (price.perHour * row.gpuSeconds) / 3600
    this.isEstimate ||= price.isEstimate
  }

  get gpuSeconds(): number {
    return this.#sums.gpuSeconds
  }

  figures(): Figures {
    const sums = this.#sums
    const hours = (seconds: number) => seconds / 3600
    const known = (seconds: number, of: number) => (of > 0 ? seconds : null)
    return {
      gpuHours: hours(sums.gpuSeconds),
      busyHours: known(hours(sums.busySeconds), sums.busyKnownSeconds),
      // Whoever shares a card may compute more than the share of memory by which time is held.
      busyRatio: known(Math.min(1, sums.busySeconds / sums.busyKnownSeconds), sums.busyKnownSeconds),
      smHours: known(hours(sums.smSeconds), sums.smKnownSeconds),
      smRatio: known(Math.min(1, sums.smSeconds / sums.smKnownSeconds), sums.smKnownSeconds),
      memoryGibHours: hours(sums.memoryByteSeconds) / 1024 ** 3,
      energyKwh: known(sums.energyJoules / 3.6e6, sums.energyKnownSeconds),
      cost: this.#cost,
      idleHours: hours(sums.idleSeconds),
      throttledHours: hours(sums.throttledSeconds),
      lostOomHours: hours(sums.lostOomSeconds),
      lostDeadHours: hours(sums.lostDeadSeconds),
    }
  }
}
