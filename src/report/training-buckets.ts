/** Series in bounded memory: minimum, maximum and mean in a fixed number of buckets, which double in width when time runs past the last one. */
import type { Reading } from '../core/model.ts'

export const BUCKETS = 1024
const FIRST_WIDTH_MS = 100

export class BucketSeries {
  readonly min = new Float64Array(BUCKETS).fill(Number.POSITIVE_INFINITY)
  readonly max = new Float64Array(BUCKETS).fill(Number.NEGATIVE_INFINITY)
  readonly sum = new Float64Array(BUCKETS)
  readonly count = new Uint32Array(BUCKETS)
  /** How many were NaN or infinite. */
  readonly odd = new Uint32Array(BUCKETS)

  mean(index: number): Reading {
    const count = this.count[index] ?? 0
    return count === 0 ? null : (this.sum[index] ?? 0) / count
  }
}

export class TimeBuckets {
  readonly origin: number
  #widthMs = FIRST_WIDTH_MS
  #used = 0
  readonly #series: BucketSeries[] = []

  constructor(origin: number) {
    this.origin = origin
  }

  get widthMs(): number {
    return this.#widthMs
  }

  get used(): number {
    return this.#used
  }

  series(): BucketSeries {
    const series = new BucketSeries()
    this.#series.push(series)
    return series
  }

  /** Bucket of this moment; makes room for it. Anything before the origin goes into the first. */
  indexOf(at: number): number {
    let index = Math.max(0, Math.floor((at - this.origin) / this.#widthMs))
    while (index >= BUCKETS) {
      this.fold()
      index = Math.floor((at - this.origin) / this.#widthMs)
    }
    if (index >= this.#used) this.#used = index + 1
    return index
  }

  add(series: BucketSeries, index: number, value: number): void {
    if (!Number.isFinite(value)) {
      series.odd[index] = (series.odd[index] ?? 0) + 1
      return
    }
    if (value < (series.min[index] ?? 0)) series.min[index] = value
    if (value > (series.max[index] ?? 0)) series.max[index] = value
    series.sum[index] = (series.sum[index] ?? 0) + value
    series.count[index] = (series.count[index] ?? 0) + 1
  }

  /** The middle of each bucket. */
  times(): number[] {
    return Array.from({ length: this.#used }, (_, index) => Math.round(this.origin + (index + 0.5) * this.#widthMs))
  }

  /** Joins neighbors while buckets are finer than the data: single points with gaps do not make a line. */
  coarsen(widthMs: number): void {
    while (this.#widthMs < widthMs && this.#used > 2) this.fold()
  }

  fold(): void {
    this.#widthMs *= 2
    this.#used = Math.ceil(this.#used / 2)
    for (const { min, max, sum, count, odd } of this.#series) {
      for (let index = 0; index < BUCKETS; index++) {
        const a = 2 * index
        const isIn = a + 1 < BUCKETS
        min[index] = isIn ? Math.min(min[a] ?? 0, min[a + 1] ?? 0) : Number.POSITIVE_INFINITY
        max[index] = isIn ? Math.max(max[a] ?? 0, max[a + 1] ?? 0) : Number.NEGATIVE_INFINITY
        sum[index] = isIn ? (sum[a] ?? 0) + (sum[a + 1] ?? 0) : 0
        count[index] = isIn ? (count[a] ?? 0) + (count[a + 1] ?? 0) : 0
        odd[index] = isIn ? (odd[a] ?? 0) + (odd[a + 1] ?? 0) : 0
      }
    }
  }
}
