/** How the last steps of training runs went: loss, gradient and step time, for the charts of alerts. Bounded, in memory only. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { StepField } from '../core/detector-contract.ts'
import type { Reading, TrainingStep } from '../core/model.ts'

const FIELDS: readonly StepField[] = ['loss', 'gradientNorm', 'stepSeconds']
const MOST_RUNS = 8
const MOST_RANKS = 64
const RECENT_POINTS = 128
const WHOLE_POINTS = 256

export interface CoursePoints {
  readonly at: readonly number[]
  readonly values: readonly Reading[]
}

export class StepCourses {
  /** The run heard from longest ago is first. */
  readonly #runs = new BoundedMap<string, Map<number, Course>>(MOST_RUNS, { isRenewed: true })

  accept(steps: readonly TrainingStep[]): void {
    for (const step of steps) this.#course(step)?.push(step)
  }

  /** Of one rank; without a rank, of the lowest known. */
  points(run: string, rank: number | null, field: StepField, from: number, to: number): CoursePoints {
    const ranks = this.#runs.get(run)
    const course = ranks?.get(rank ?? Math.min(...ranks.keys()))
    return course?.points(field, from, to) ?? { at: [], values: [] }
  }

  #course({ run, rank }: TrainingStep): Course | undefined {
    const ranks = this.#runs.get(run) ?? new Map<number, Course>()
    this.#runs.set(run, ranks)
    const known = ranks.get(rank)
    if (known || ranks.size >= MOST_RANKS) return known
    const course = new Course()
    ranks.set(rank, course)
    return course
  }
}

/** The last steps one by one, and the whole run in strides that double when it gets too long: of each stride the worst. */
class Course {
  readonly #recent = new Points(RECENT_POINTS)
  readonly #whole = new Points(WHOLE_POINTS)
  #stride = 1
  #inStride = 0

  push(step: TrainingStep): void {
    if (this.#recent.isFull) this.#recent.dropHalf()
    this.#recent.add(step)
    if (this.#inStride === 0) {
      if (this.#whole.isFull) {
        this.#whole.mergePairs()
        this.#stride *= 2
      }
      this.#whole.copyLast(this.#recent)
    } else this.#whole.mergeLast(this.#recent)
    this.#inStride = (this.#inStride + 1) % this.#stride
  }

  points(field: StepField, from: number, to: number): CoursePoints {
    const at: number[] = []
    const values: Reading[] = []
    this.#whole.collect(field, from, Math.min(to, this.#recent.firstAt - 1), at, values)
    this.#recent.collect(field, from, to, at, values)
    return { at, values }
  }
}

/** Columns of points; NaN: not known, or not a number. */
class Points {
  readonly #at: Float64Array
  readonly #columns: Readonly<Record<StepField, Float64Array>>
  #length = 0

  constructor(most: number) {
    this.#at = new Float64Array(most)
    this.#columns = { loss: new Float64Array(most), gradientNorm: new Float64Array(most), stepSeconds: new Float64Array(most) }
  }

  get isFull(): boolean {
    return this.#length === this.#at.length
  }

  get firstAt(): number {
    return this.#at[0] ?? 0
  }

  add(step: TrainingStep): void {
    const before = this.#length === 0 ? Number.NaN : (this.#at[this.#length - 1] ?? Number.NaN)
    this.#at[this.#length] = step.at
    for (const field of FIELDS) this.#columns[field][this.#length] = finite(step[field])
    // Without a step time, the time between two steps counts.
    if (step.stepSeconds === null) this.#columns.stepSeconds[this.#length] = step.at > before ? (step.at - before) / 1000 : Number.NaN
    this.#length++
  }

  copyLast(from: Points): void {
    this.#take(this.#length++, from, from.#length - 1)
  }

  mergeLast(from: Points): void {
    const last = this.#length - 1
    const other = from.#length - 1
    this.#at[last] = from.#at[other] ?? 0
    for (const field of FIELDS) this.#columns[field][last] = worse(this.#columns[field][last], from.#columns[field][other])
  }

  dropHalf(): void {
    const left = this.#length >> 1
    for (const column of [this.#at, ...Object.values(this.#columns)]) column.copyWithin(0, this.#length - left, this.#length)
    this.#length = left
  }

  mergePairs(): void {
    const left = this.#length >> 1
    for (let index = 0; index < left; index++) {
      this.#at[index] = this.#at[2 * index + 1] ?? 0
      for (const column of Object.values(this.#columns)) column[index] = worse(column[2 * index], column[2 * index + 1])
    }
    this.#length = left
  }

  collect(field: StepField, from: number, to: number, at: number[], values: Reading[]): void {
    for (let index = 0; index < this.#length; index++) {
      const time = this.#at[index] ?? 0
      if (time < from || time > to) continue
      const value = this.#columns[field][index] ?? Number.NaN
      at.push(time)
      values.push(Number.isNaN(value) ? null : value)
    }
  }

  #take(index: number, from: Points, other: number): void {
    this.#at[index] = from.#at[other] ?? 0
    for (const field of FIELDS) this.#columns[field][index] = from.#columns[field][other] ?? Number.NaN
  }
}

function finite(value: Reading): number {
  return value === null || !Number.isFinite(value) ? Number.NaN : value
}

function worse(a = Number.NaN, b = Number.NaN): number {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b)
}
