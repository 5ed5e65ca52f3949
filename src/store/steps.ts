import type { HistoryAnswer, HistoryQuery } from '../core/kinds.ts'
import type { Reading } from '../core/model.ts'
import type { Summary } from './minute-ring.ts'

interface StepBounds {
  readonly begin: number
  readonly end: number
}

export const MAX_POINTS = 10_000

export function mostPoints({ points = MAX_POINTS }: HistoryQuery): number {
  return Math.min(MAX_POINTS, Math.max(2, Math.floor(points)))
}

/** Equal steps on a grid that does not move with the range, so that a scrolling chart does not flicker. */
export class Steps {
  readonly #query: HistoryQuery
  readonly #stepMs: number
  readonly #first: number
  readonly #length: number
  readonly #counts: Float64Array[]
  readonly #sums: Float64Array[]
  readonly #mins: Float64Array[]
  readonly #maxs: Float64Array[]

  /** `unitMs`: a step is a whole number of these. It grows when there would be too many. */
  constructor(query: HistoryQuery, firstAt: number, lastAt: number, stepMs: number, unitMs: number) {
    const most = mostPoints(query)
    const needed = (lastAt - firstAt) / (most - 1)
    this.#query = query
    this.#stepMs = Math.ceil(Math.max(stepMs, needed) / unitMs) * unitMs
    this.#first = Math.floor(firstAt / this.#stepMs)
    this.#length = Math.min(most, Math.floor(lastAt / this.#stepMs) - this.#first + 1)
    const columns = () => query.fields.map(() => new Float64Array(this.#length))
    this.#counts = columns()
    this.#sums = columns()
    this.#mins = columns()
    this.#maxs = columns()
  }

  add(at: number, position: number, { count, sum, min, max }: Summary): void {
    const counts = this.#counts[position]
    const sums = this.#sums[position]
    const mins = this.#mins[position]
    const maxs = this.#maxs[position]
    if (!counts || !sums || !mins || !maxs) return
    const step = Math.min(this.#length - 1, Math.floor(at / this.#stepMs) - this.#first)
    if (step < 0) return
    const known = counts[step] ?? 0
    mins[step] = known === 0 ? min : Math.min(mins[step] ?? min, min)
    maxs[step] = known === 0 ? max : Math.max(maxs[step] ?? max, max)
    sums[step] = (sums[step] ?? 0) + sum
    counts[step] = known + count
  }

  /** `finish`: from the unit that was added to the unit of the answer. */
  answer(finish: (position: number, value: number) => number = (_, value) => value, bounds = this.#all()): HistoryAnswer {
    const length = bounds.end - bounds.begin
    const times = Array.from({ length }, (_, index) => (this.#first + bounds.begin + index) * this.#stepMs)
    const column = (position: number, value: (step: number, count: number) => number | undefined): Reading[] =>
      times.map((_, index) => {
        const step = bounds.begin + index
        const count = this.#counts[position]?.[step] ?? 0
        const found = count === 0 ? undefined : value(step, count)
        return found === undefined ? null : finish(position, found)
      })
    const { gpu, fields } = this.#query
    return {
      gpu,
      fields,
      stepMs: this.#stepMs,
      data: [times, ...fields.map((_, position) => column(position, (step, count) => (this.#sums[position]?.[step] ?? 0) / count))],
      min: fields.map((_, position) => column(position, (step) => this.#mins[position]?.[step])),
      max: fields.map((_, position) => column(position, (step) => this.#maxs[position]?.[step])),
    }
  }

  /** From the first step with a reading to the last one; null: there is none. */
  filled(): StepBounds | null {
    const isFilled = (step: number) => this.#counts.some((counts) => (counts[step] ?? 0) > 0)
    let begin = 0
    let end = this.#length
    while (begin < end && !isFilled(begin)) begin++
    while (end > begin && !isFilled(end - 1)) end--
    return begin < end ? { begin, end } : null
  }

  #all(): StepBounds {
    return { begin: 0, end: this.#length }
  }
}
