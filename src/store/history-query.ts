import type { HistoryAnswer, HistoryQuery, SeriesField } from '../core/kinds.ts'
import type { GpuField, Reading } from '../core/model.ts'
import type { GpuHistory } from './gpu-history.ts'
import { MINUTE_MS } from './minute-ring.ts'
import { FIELD_INDEX, type FieldIndex, type SampleRing } from './sample-ring.ts'
import { mostPoints, Steps } from './steps.ts'

/** Two samples further apart than this many intervals have a gap between them. */
const HOLE_INTERVALS = 2.5
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
  return answerSamples(samplesOf(ring), query, ring.indexFrom(from), endIndex(ring, to))
}

/** Samples in ascending time. */
export interface Samples {
  readonly length: number
  timeAt(index: number): number
  /** The values of a field by index; NaN: null. */
  column(field: SeriesField): (index: number) => number
}

export function samplesOf(ring: SampleRing): Samples {
  return {
    length: ring.length,
    timeAt: (index) => ring.timeAt(index),
    column: (field) => {
      const own = fieldIndex(field)
      return (index) => ring.valueAt(own, index)
    },
  }
}

/** As they were taken where that is not too much, else in steps. */
export function answerSamples(samples: Samples, query: HistoryQuery, begin: number, end: number): HistoryAnswer {
  if (begin >= end) return emptyAnswer(query)
  const intervalMs = typicalInterval(samples)
  const stepMs = query.stepMs !== null && query.stepMs > 0 ? Math.max(1, Math.round(query.stepMs)) : null
  // A gap is longer than the median interval, so at most every second interval is one.
  const fits = end - begin <= Math.floor(mostPoints(query) / 1.5)
  if (fits && (stepMs === null || stepMs <= intervalMs)) return answerAsTaken(samples, query, begin, end, intervalMs)
  return answerInSteps(samples, query, begin, end, stepMs ?? 1)
}

function answerAsTaken(samples: Samples, query: HistoryQuery, begin: number, end: number, intervalMs: number): HistoryAnswer {
  const values = query.fields.map((field) => samples.column(field))
  const times: number[] = []
  const columns: Reading[][] = values.map(() => [])
  for (let index = begin; index < end; index++) {
    const at = samples.timeAt(index)
    const previous = times.at(-1)
    if (previous !== undefined && at - previous > HOLE_INTERVALS * intervalMs) {
      times.push(previous + intervalMs)
      for (const column of columns) column.push(null)
    }
    times.push(at)
    columns.forEach((column, position) => {
      column.push(reading(values[position]?.(index) ?? Number.NaN))
    })
  }
  return { gpu: query.gpu, fields: query.fields, stepMs: 0, data: [times, ...columns], min: null, max: null }
}

function answerInSteps(samples: Samples, query: HistoryQuery, begin: number, end: number, stepMs: number): HistoryAnswer {
  const steps = new Steps(query, samples.timeAt(begin), samples.timeAt(end - 1), stepMs, 1)
  const values = query.fields.map((field) => samples.column(field))
  for (let index = begin; index < end; index++) {
    const at = samples.timeAt(index)
    values.forEach((column, position) => {
      const value = column(index)
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

/** Index after the last sample at or before `to`. */
function endIndex(ring: SampleRing, to: number): number {
  const index = ring.indexFrom(to)
  return index < ring.length && ring.timeAt(index) === to ? index + 1 : index
}

/** The median time between samples; Infinity when there is no pair of them. */
function typicalInterval(samples: Samples): number {
  const intervals: number[] = []
  for (let index = Math.max(1, samples.length - INTERVALS_LOOKED_AT); index < samples.length; index++)
    intervals.push(samples.timeAt(index) - samples.timeAt(index - 1))
  intervals.sort((a, b) => a - b)
  return intervals[intervals.length >> 1] ?? Number.POSITIVE_INFINITY
}

export function emptyAnswer(query: HistoryQuery): HistoryAnswer {
  return { gpu: query.gpu, fields: query.fields, stepMs: 0, data: [[], ...query.fields.map(() => [])], min: null, max: null }
}

function fieldIndex(field: SeriesField): FieldIndex {
  return FIELD_INDEX.get(field as GpuField) ?? UNKNOWN_FIELD
}

function reading(value: number): Reading {
  return Number.isNaN(value) ? null : value
}
