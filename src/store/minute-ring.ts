import { GPU_FIELDS } from '../core/record.ts'
import type { FieldIndex } from './sample-ring.ts'

export const MINUTE_MS = 60_000
const MAX_COUNT = 65_535

export interface Summary {
  count: number
  sum: number
  min: number
  max: number
}

/** One unfinished minute, or another step. `minute` counts from the epoch. */
export class MinuteTotals {
  readonly minute: number
  readonly counts: Float64Array
  readonly sums: Float64Array
  readonly mins: Float64Array
  readonly maxs: Float64Array

  constructor(minute: number, fields = GPU_FIELDS.length) {
    this.minute = minute
    this.counts = new Float64Array(fields)
    this.sums = new Float64Array(fields)
    this.mins = new Float64Array(fields)
    this.maxs = new Float64Array(fields)
  }

  /** By FieldIndex; NaN: no reading. */
  add(values: Float64Array): void {
    for (let field = 0; field < values.length; field++) {
      const value = values[field] ?? Number.NaN
      if (Number.isNaN(value)) continue
      const count = this.counts[field] ?? 0
      if (count === 0 || value < (this.mins[field] ?? 0)) this.mins[field] = value
      if (count === 0 || value > (this.maxs[field] ?? 0)) this.maxs[field] = value
      this.sums[field] = (this.sums[field] ?? 0) + value
      this.counts[field] = count + 1
    }
  }

  summary(field: FieldIndex): Summary {
    return { count: this.counts[field] ?? 0, sum: this.sums[field] ?? 0, min: this.mins[field] ?? 0, max: this.maxs[field] ?? 0 }
  }
}

/** Bytes a minute: extremes are single-precision distances from the exact mean, off by 64 bytes for 1 GB of 80. */
const MEAN_BYTES = 10
const EXTREME_BYTES = 8

interface MinuteColumn {
  readonly counts: Uint16Array
  readonly means: Float64Array
  /** null while no minute had two different values: error counters and modes rarely move. */
  extremes: { readonly below: Float32Array; readonly above: Float32Array } | null
}

/** Finished minutes of one GPU. A minute's slot follows from its number, so that older ones can be filled in later. */
export class MinuteRing {
  readonly #capacity: number
  readonly #minutes: Float64Array
  readonly #columns: (MinuteColumn | undefined)[] = new Array<MinuteColumn | undefined>(GPU_FIELDS.length).fill(undefined)

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#minutes = new Float64Array(capacity).fill(Number.NaN)
  }

  get bytes(): number {
    return this.#columns.reduce(
      (sum, column) => sum + (column ? this.#capacity * (MEAN_BYTES + (column.extremes ? EXTREME_BYTES : 0)) : 0),
      this.#minutes.byteLength,
    )
  }

  /** First and last minute with samples; null when there is none. */
  extent(): { readonly first: number; readonly last: number } | null {
    let first = Number.POSITIVE_INFINITY
    let last = Number.NEGATIVE_INFINITY
    for (const minute of this.#minutes) {
      if (minute < first) first = minute
      if (minute > last) last = minute
    }
    return last === Number.NEGATIVE_INFINITY ? null : { first, last }
  }

  /** Whether any minute from `first` up to, not including, `end` has samples. */
  hasBetween(first: number, end: number): boolean {
    return this.#minutes.some((minute) => minute >= first && minute < end)
  }

  /** The minutes from `first` to `last` with samples, in no order. */
  between(first: number, last: number): number[] {
    return Array.from(this.#minutes.filter((minute) => minute >= first && minute <= last))
  }

  /** Adds to that minute; one that a younger minute has replaced is skipped. */
  merge(totals: MinuteTotals): void {
    const slot = this.#slot(totals.minute)
    const held = this.#minutes[slot] ?? Number.NaN
    if (held > totals.minute) return
    if (held !== totals.minute) {
      this.#minutes[slot] = totals.minute
      for (const column of this.#columns) if (column) column.counts[slot] = 0
    }
    for (let field = 0; field < GPU_FIELDS.length; field++) {
      const added = totals.summary(field)
      if (added.count === 0) continue
      const known = this.summary(field, totals.minute)
      this.#store(field, slot, known ? combine(known, added) : added)
    }
  }

  /** null: no value in that minute. */
  summary(field: FieldIndex, minute: number): Summary | null {
    const slot = this.#slot(minute)
    const column = this.#columns[field]
    const count = column?.counts[slot] ?? 0
    if (!column || count === 0 || this.#minutes[slot] !== minute) return null
    const mean = column.means[slot] ?? 0
    const { below, above } = column.extremes ?? {}
    return { count, sum: mean * count, min: extreme(mean, -(below?.[slot] ?? 0)), max: extreme(mean, above?.[slot] ?? 0) }
  }

  /** After the clock was set back: drops minutes in the future. */
  forgetAfter(minute: number): void {
    for (let slot = 0; slot < this.#capacity; slot++) {
      if ((this.#minutes[slot] ?? 0) > minute) this.#minutes[slot] = Number.NaN
    }
  }

  #slot(minute: number): number {
    return ((minute % this.#capacity) + this.#capacity) % this.#capacity
  }

  #store(field: FieldIndex, slot: number, { count, sum, min, max }: Summary): void {
    let column = this.#columns[field]
    if (!column) {
      column = { counts: new Uint16Array(this.#capacity), means: new Float64Array(this.#capacity), extremes: null }
      this.#columns[field] = column
    }
    const mean = sum / count
    column.counts[slot] = Math.min(count, MAX_COUNT)
    column.means[slot] = mean
    if (min !== max) column.extremes ??= { below: new Float32Array(this.#capacity), above: new Float32Array(this.#capacity) }
    if (!column.extremes) return
    column.extremes.below[slot] = mean - min
    column.extremes.above[slot] = max - mean
  }
}

export function combine(a: Summary, b: Summary): Summary {
  return { count: a.count + b.count, sum: a.sum + b.sum, min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) }
}

/** What single precision leaves of a zero is a zero: no GPU uses minus two kilobytes. */
function extreme(mean: number, distance: number): number {
  const value = mean + distance
  return Math.abs(value) <= Math.abs(mean) * 2 ** -23 ? 0 : value
}
