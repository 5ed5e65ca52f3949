/** Records of one device on an even grid, each with least, sum, most and count of every reading. */
import { MinuteTotals, type Summary } from '../minute-ring.ts'

export type Row = MinuteTotals

export class Rows {
  readonly stepMs: number
  readonly #size: number
  readonly #rows = new Map<number, Row>()

  /** `size`: how many series a device has. */
  constructor(stepMs: number, size: number) {
    this.stepMs = stepMs
    this.#size = size
  }

  get length(): number {
    return this.#rows.size
  }

  /** Adds to the record that covers this moment. */
  add(at: number, series: number, { count, sum, min, max }: Summary): void {
    if (count === 0) return
    const row = this.#rowAt(at)
    const known = row.counts[series] ?? 0
    row.mins[series] = known === 0 ? min : Math.min(row.mins[series] ?? min, min)
    row.maxs[series] = known === 0 ? max : Math.max(row.maxs[series] ?? max, max)
    row.sums[series] = (row.sums[series] ?? 0) + sum
    row.counts[series] = known + count
  }

  addAll(other: Rows): void {
    for (const [step, row] of other.#rows) {
      const into = this.#rowAt(step * other.stepMs)
      for (let series = 0; series < this.#size; series++) {
        const count = row.counts[series] ?? 0
        if (count === 0) continue
        const known = into.counts[series] ?? 0
        const [min, max] = [row.mins[series] ?? 0, row.maxs[series] ?? 0]
        if (known === 0 || min < (into.mins[series] ?? min)) into.mins[series] = min
        if (known === 0 || max > (into.maxs[series] ?? max)) into.maxs[series] = max
        into.sums[series] = (into.sums[series] ?? 0) + (row.sums[series] ?? 0)
        into.counts[series] = known + count
      }
    }
  }

  inOrder(): { readonly at: number; readonly row: Row }[] {
    return [...this.#rows].sort(([a], [b]) => a - b).map(([step, row]) => ({ at: step * this.stepMs, row }))
  }

  #rowAt(at: number): Row {
    const step = Math.floor(at / this.stepMs)
    const known = this.#rows.get(step)
    if (known) return known
    const made = new MinuteTotals(step, this.#size)
    this.#rows.set(step, made)
    return made
  }
}

/** How many samples a record is made of: as many as the reading that was there most often. */
export function samplesIn(row: Row): number {
  let most = 0
  for (const count of row.counts) if (count > most) most = count
  return most
}
