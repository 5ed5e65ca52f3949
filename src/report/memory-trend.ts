/** Level, extremes, percentiles and growth of one memory series of any length, in constant memory. */
import type { Reading } from '../core/model.ts'

/** Tenths of a percent of the device. */
const BINS = 1000
const PERCENTILES = [5, 25, 50, 75, 95, 99] as const

export type Percentiles = Readonly<Record<`p${(typeof PERCENTILES)[number]}`, number>>

export class MemoryTrend {
  count = 0
  firstAt = 0
  lastAt = 0
  firstBytes = 0
  lastBytes = 0
  minBytes = Number.POSITIVE_INFINITY
  maxBytes = Number.NEGATIVE_INFINITY
  maxAt = 0
  /** Means and co-moments of time (seconds since the first sample) and bytes. */
  #meanTime = 0
  #meanBytes = 0
  #timeSquares = 0
  #products = 0
  #bins: Uint32Array | null = null
  #binned = 0

  push(at: number, bytes: number, totalBytes: Reading = null): void {
    if (this.count === 0) {
      this.firstAt = at
      this.firstBytes = bytes
    }
    this.count++
    this.lastAt = at
    this.lastBytes = bytes
    this.minBytes = Math.min(this.minBytes, bytes)
    if (bytes > this.maxBytes) {
      this.maxBytes = bytes
      this.maxAt = at
    }
    const seconds = (at - this.firstAt) / 1000
    const before = seconds - this.#meanTime
    this.#meanTime += before / this.count
    this.#meanBytes += (bytes - this.#meanBytes) / this.count
    this.#timeSquares += before * (seconds - this.#meanTime)
    this.#products += before * (bytes - this.#meanBytes)
    if (totalBytes === null || totalBytes <= 0) return
    this.#bins ??= new Uint32Array(BINS + 1)
    const bin = Math.min(BINS, Math.max(0, Math.round((bytes / totalBytes) * BINS)))
    this.#bins[bin] = (this.#bins[bin] ?? 0) + 1
    this.#binned++
  }

  get spanMs(): number {
    return this.lastAt - this.firstAt
  }

  /** Least-squares slope; null before two samples at different times. */
  get bytesPerSecond(): Reading {
    return this.#timeSquares > 0 ? this.#products / this.#timeSquares : null
  }

  /** Rise of that line from the first sample to the last. */
  get growthBytes(): Reading {
    const slope = this.bytesPerSecond
    return slope === null ? null : slope * (this.spanMs / 1000)
  }

  /** In percent of the device, to a tenth; null when no sample had both use and total. */
  percentiles(): Percentiles | null {
    const bins = this.#bins
    if (bins === null) return null
    const at = (percent: number) => {
      const wanted = Math.max(1, Math.ceil((percent / 100) * this.#binned))
      let seen = 0
      for (let bin = 0; bin <= BINS; bin++) {
        seen += bins[bin] ?? 0
        if (seen >= wanted) return (bin * 100) / BINS
      }
      return 100
    }
    return Object.fromEntries(PERCENTILES.map((percent) => [`p${percent}`, at(percent)])) as Percentiles
  }
}
