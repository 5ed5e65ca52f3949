import type { HistoryAnswer, HistoryQuery } from '../core/kinds.ts'
import type { GpuField, Reading } from '../core/model.ts'
import type { GpuHistory } from './gpu-history.ts'
import { MINUTE_MS, type Summary } from './minute-ring.ts'
import { FIELD_INDEX, type FieldIndex, type SampleRing } from './sample-ring.ts'

export const MAX_POINTS = 10_000
/** Two samples further apart than this many intervals have a gap between them. */
const HOLE_INTERVALS = 2.5
/** A gap is longer than the median interval, so at most every second interval is one. */
const MAX_SAMPLES = Math.floor(MAX_POINTS / 1.5)
const INTERVALS_LOOKED_AT = 512
/** More than the history can hold, so that one step covers all of it. */
const LONGEST_STEP_MS = 10 * 366 * 86_400_000
/** An unknown field: a column of nulls. */
const UNKNOWN_FIELD = -1

/** The finest answer for the range; its stepMs says which it was. */
export function answerQuery(gpu: GpuHistory | undefined, query: HistoryQuery): HistoryAnswer {
  const { from, to } = query
  const stepMs = query.stepMs !== null && query.stepMs > 0 ? Math.min(LONGEST_STEP_MS, Math.max(1, Math.round(query.stepMs))) : null
  if (!gpu || !(from <= to)) return emptyAnswer(query)
  const ring = gpu.samples
  const samplesReach = ring.length > 0 && (from >= ring.firstAt || !gpu.hasMinutesBetween(from, ring.firstAt))
  if (!samplesReach || (stepMs ?? 0) >= MINUTE_MS) return answerFromMinutes(gpu, query, stepMs ?? MINUTE_MS)
  const begin = ring.indexFrom(from)
  const end = endIndex(ring, to)
  if (begin >= end) return emptyAnswer(query)
  const intervalMs = typicalInterval(ring)
  if (end - begin <= MAX_SAMPLES && (stepMs === null || stepMs <= intervalMs)) return answerAsTaken(ring, query, begin, end, intervalMs)
  return answerFromSamples(ring, query, begin, end, stepMs ?? 1)
}

function answerAsTaken(ring: SampleRing, query: HistoryQuery, begin: number, end: number, intervalMs: number): HistoryAnswer {
  const fields = query.fields.map(fieldIndex)
  const times: number[] = []
  const columns: Reading[][] = fields.map(() => [])
  for (let index = begin; index < end; index++) {
    const at = ring.timeAt(index)
    const previous = times.at(-1)
    if (previous !== undefined && at - previous > HOLE_INTERVALS * intervalMs) {
      times.push(previous + intervalMs)
      for (const column of columns) column.push(null)
    }
    times.push(at)
    columns.forEach((column, position) => {
      column.push(reading(ring.valueAt(fields[position] ?? UNKNOWN_FIELD, index)))
    })
  }
  return { gpu: query.gpu, fields: query.fields, stepMs: 0, data: [times, ...columns], min: null, max: null }
}

function answerFromSamples(ring: SampleRing, query: HistoryQuery, begin: number, end: number, stepMs: number): HistoryAnswer {
  const steps = new Steps(query, ring.timeAt(begin), ring.timeAt(end - 1), stepMs, 1)
  const fields = query.fields.map(fieldIndex)
  for (let index = begin; index < end; index++) {
    const at = ring.timeAt(index)
    fields.forEach((field, position) => {
      const value = ring.valueAt(field, index)
      if (!Number.isNaN(value)) steps.add(at, position, { count: 1, sum: value, min: value, max: value })
    })
  }
  return steps.answer()
}

function answerFromMinutes(gpu: GpuHistory, query: HistoryQuery, stepMs: number): HistoryAnswer {
  const extent = gpu.extent()
  if (!extent) return emptyAnswer(query)
  const first = Math.max(extent.first, Math.floor(query.from / MINUTE_MS))
  const last = Math.min(extent.last, Math.floor(query.to / MINUTE_MS))
  if (first > last) return emptyAnswer(query)
  const steps = new Steps(query, first * MINUTE_MS, last * MINUTE_MS, stepMs, MINUTE_MS)
  const fields = query.fields.map(fieldIndex)
  for (const minute of gpu.minutesBetween(first, last)) {
    fields.forEach((field, position) => {
      const summary = gpu.minute(field, minute)
      if (summary) steps.add(minute * MINUTE_MS, position, summary)
    })
  }
  return steps.answer()
}

/** Equal steps on a grid that does not move with the range, so that a scrolling chart does not flicker. */
class Steps {
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
    const needed = (lastAt - firstAt) / (MAX_POINTS - 1)
    this.#query = query
    this.#stepMs = Math.ceil(Math.max(stepMs, needed) / unitMs) * unitMs
    this.#first = Math.floor(firstAt / this.#stepMs)
    this.#length = Math.min(MAX_POINTS, Math.floor(lastAt / this.#stepMs) - this.#first + 1)
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
    const known = counts[step] ?? 0
    mins[step] = known === 0 ? min : Math.min(mins[step] ?? min, min)
    maxs[step] = known === 0 ? max : Math.max(maxs[step] ?? max, max)
    sums[step] = (sums[step] ?? 0) + sum
    counts[step] = known + count
  }

  answer(): HistoryAnswer {
    const times = Array.from({ length: this.#length }, (_, index) => (this.#first + index) * this.#stepMs)
    const column = (position: number, value: (step: number, count: number) => number | undefined): Reading[] => {
      const counts = this.#counts[position]
      return times.map((_, step) => {
        const count = counts?.[step] ?? 0
        return count === 0 ? null : (value(step, count) ?? null)
      })
    }
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
}

/** Index after the last sample at or before `to`. */
function endIndex(ring: SampleRing, to: number): number {
  const index = ring.indexFrom(to)
  return index < ring.length && ring.timeAt(index) === to ? index + 1 : index
}

/** The median time between samples; Infinity when there is no pair of them. */
function typicalInterval(ring: SampleRing): number {
  const intervals: number[] = []
  for (let index = Math.max(1, ring.length - INTERVALS_LOOKED_AT); index < ring.length; index++)
    intervals.push(ring.timeAt(index) - ring.timeAt(index - 1))
  intervals.sort((a, b) => a - b)
  return intervals[intervals.length >> 1] ?? Number.POSITIVE_INFINITY
}

function emptyAnswer(query: HistoryQuery): HistoryAnswer {
  return { gpu: query.gpu, fields: query.fields, stepMs: 0, data: [[], ...query.fields.map(() => [])], min: null, max: null }
}

function fieldIndex(field: GpuField): FieldIndex {
  return FIELD_INDEX.get(field) ?? UNKNOWN_FIELD
}

function reading(value: number): Reading {
  return Number.isNaN(value) ? null : value
}
