/** Columns in memory, at several resolutions: any stretch of events is drawn from about one column a pixel. */
import { type BandColumns, columnStart, sumsOf } from '../../../src/core/memory/snapshot-picture.ts'

export class ColumnLevels {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly highestAt: Float64Array
  readonly timesUs: Float64Array | null
  readonly bands: readonly Float64Array[]
  readonly totals: Float64Array
  readonly least: Float64Array
  readonly reserved: Float64Array
  readonly mostBytes: number
  readonly mostReserved: number
  /** At level k: for every 2^k columns, the one in which most was in use. */
  readonly #highest: Int32Array[]

  constructor(columns: BandColumns) {
    this.from = columns.from
    this.to = columns.to
    this.highestAt = sumsOf(columns.highestAt)
    this.count = this.highestAt.length
    this.timesUs = columns.timesUs && sumsOf(columns.timesUs)
    this.bands = columns.bands.map(sumsOf)
    this.least = sumsOf(columns.least)
    this.reserved = sumsOf(columns.reserved)
    this.totals = new Float64Array(this.count)
    for (const band of this.bands) for (let i = 0; i < this.count; i++) this.totals[i] = (this.totals[i] as number) + (band[i] as number)
    this.mostBytes = largest(this.totals)
    this.mostReserved = largest(this.reserved)
    this.#highest = [Int32Array.from(this.totals.keys())]
    for (let last = this.#highest[0] as Int32Array; last.length > 1; ) {
      last = this.#halved(last)
      this.#highest.push(last)
    }
  }

  get eventsPerColumn(): number {
    return (this.to - this.from) / Math.max(1, this.count)
  }

  /** The column that an event is in. */
  columnOf(event: number): number {
    const guess = Math.floor(((event - this.from) * this.count) / Math.max(1, this.to - this.from))
    const column = Math.min(this.count - 1, Math.max(0, guess))
    // Borders are rounded down, so that the guess may be one too low.
    return column + 1 < this.count && columnStart(this, this.count, column + 1) <= event ? column + 1 : column
  }

  /** For each of `pixels` between two events: the column to be shown there, the highest of those it covers; -1 outside. */
  pixelColumns(from: number, to: number, pixels: number): Int32Array {
    const shown = new Int32Array(pixels).fill(-1)
    if (this.count === 0) return shown
    const columnsPerPixel = (to - from) / pixels / this.eventsPerColumn
    const level = Math.max(0, Math.min(this.#highest.length - 1, Math.floor(Math.log2(columnsPerPixel))))
    const highest = this.#highest[level] as Int32Array
    for (let pixel = 0; pixel < pixels; pixel++) {
      const begin = from + (pixel * (to - from)) / pixels
      const end = from + ((pixel + 1) * (to - from)) / pixels
      if (end <= this.from || begin >= this.to) continue
      const first = this.columnOf(Math.floor(Math.max(begin, this.from)))
      const last = Math.max(first, this.columnOf(Math.ceil(Math.min(end, this.to)) - 1))
      let best = -1
      for (let group = first >> level; group <= last >> level; group++) {
        const column = highest[group] as number
        if (best < 0 || (this.totals[column] as number) > (this.totals[best] as number)) best = column
      }
      shown[pixel] = best
    }
    return shown
  }

  /** Which band a height belongs to, in bytes from below; -1: above all. */
  bandAt(column: number, bytes: number): number {
    let sum = 0
    for (const [band, values] of this.bands.entries()) {
      sum += values[column] ?? 0
      if (bytes < sum) return band
    }
    return -1
  }

  #halved(level: Int32Array): Int32Array {
    const half = new Int32Array((level.length + 1) >> 1)
    for (let i = 0; i < half.length; i++) {
      const [left, right] = [level[2 * i] as number, level[2 * i + 1]]
      half[i] = right !== undefined && (this.totals[right] as number) > (this.totals[left] as number) ? right : left
    }
    return half
  }
}

function largest(values: Float64Array): number {
  let most = 0
  for (const value of values) if (value > most) most = value
  return most
}
