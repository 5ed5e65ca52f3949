import type { GpuField, GpuReadings } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'

export type FieldIndex = number

export const FIELD_INDEX: ReadonlyMap<GpuField, FieldIndex> = new Map(GPU_FIELDS.map((field, index) => [field, index]))

/** Five minutes, the shortest span that the screens offer, and a little for clocks that differ. */
const KEPT_MS = 330_000
/** That long at ten samples a second. */
const MOST_SAMPLES = 3300

/** The newest samples of one GPU, in ascending time. A column exists once its field had a value; NaN is null. It grows to five minutes. */
export class SampleRing {
  #capacity: number
  #times: Float64Array
  readonly #columns: (Float64Array | undefined)[] = new Array<Float64Array | undefined>(GPU_FIELDS.length).fill(undefined)
  #start = 0
  #length = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#times = new Float64Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** Infinity when empty. */
  get firstAt(): number {
    return this.#length === 0 ? Number.POSITIVE_INFINITY : this.timeAt(0)
  }

  /** -Infinity when empty. */
  get lastAt(): number {
    return this.#length === 0 ? Number.NEGATIVE_INFINITY : this.timeAt(this.#length - 1)
  }

  get bytes(): number {
    return this.#columns.reduce((sum, column) => sum + (column?.byteLength ?? 0), this.#times.byteLength)
  }

  /** `index` 0 is the oldest. */
  timeAt(index: number): number {
    return this.#times[this.#slot(index)] ?? Number.NaN
  }

  /** NaN: null. */
  valueAt(field: FieldIndex, index: number): number {
    return this.#columns[field]?.[this.#slot(index)] ?? Number.NaN
  }

  /** A clock that was set back drops the samples in the future. */
  push(at: number, values: Float64Array): void {
    while (this.#length > 0 && this.lastAt >= at) this.#length -= 1
    if (this.#length < this.#capacity || this.#hasGrown(at - this.firstAt)) this.#length += 1
    else this.#start = (this.#start + 1) % this.#capacity
    const slot = this.#slot(this.#length - 1)
    this.#times[slot] = at
    for (let field = 0; field < GPU_FIELDS.length; field++) this.#put(field, slot, values[field] ?? Number.NaN)
  }

  /** Puts the newest of `older` in front, as many as there is room for, and only those before our first. */
  prepend(older: SampleRing): void {
    for (let index = older.length - 1; index >= 0; index--) {
      const at = older.timeAt(index)
      if (at >= this.firstAt) continue
      if (this.#length >= this.#capacity && !this.#hasGrown(this.lastAt - at)) return
      this.#start = (this.#start - 1 + this.#capacity) % this.#capacity
      this.#length += 1
      this.#times[this.#start] = at
      for (let field = 0; field < GPU_FIELDS.length; field++) this.#put(field, this.#start, older.valueAt(field, index))
    }
  }

  /** Index of the first sample at or after `at`; length when there is none. */
  indexFrom(at: number): number {
    let low = 0
    let high = this.#length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.timeAt(middle) < at) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Whether there is room for one more sample now, with which the ring would span this long. */
  #hasGrown(spanMs: number): boolean {
    if (!(spanMs < KEPT_MS) || this.#capacity >= MOST_SAMPLES) return false
    const capacity = Math.min(MOST_SAMPLES, Math.max(this.#capacity + 16, Math.ceil(this.#capacity * 1.25)))
    const grown = (column: Float64Array) => {
      const larger = new Float64Array(capacity).fill(Number.NaN)
      larger.set(column.subarray(this.#start))
      larger.set(column.subarray(0, this.#start), this.#capacity - this.#start)
      return larger
    }
    this.#times = grown(this.#times)
    this.#columns.forEach((column, field) => {
      if (column) this.#columns[field] = grown(column)
    })
    this.#capacity = capacity
    this.#start = 0
    return true
  }

  #slot(index: number): number {
    return (this.#start + index) % this.#capacity
  }

  #put(field: FieldIndex, slot: number, value: number): void {
    let column = this.#columns[field]
    if (!column) {
      if (Number.isNaN(value)) return
      column = new Float64Array(this.#capacity).fill(Number.NaN)
      this.#columns[field] = column
    }
    column[slot] = value
  }
}

/** Far beyond any reading, and small enough for sums and single precision. */
const LARGEST_READING = 1e30

/** Writes the readings by FieldIndex into `values`: NaN for null, and for impossible values. */
export function readValues(readings: GpuReadings, values: Float64Array): void {
  for (let field = 0; field < GPU_FIELDS.length; field++) {
    const value = readings[GPU_FIELDS[field] as GpuField]
    values[field] = value === null || !(Math.abs(value) <= LARGEST_READING) ? Number.NaN : value
  }
}
