/** The chart of an alert: what its detector looked at, around the time of the trouble. */
import type { Alert, AlertSeries } from '../core/alert-contract.ts'
import type { DetectorChart, StepField } from '../core/detector-contract.ts'
import type { History } from '../core/kinds.ts'
import type { GpuField, GpuInfo, Reading } from '../core/model.ts'
import type { CoursePoints, StepCourses } from './step-courses.ts'

/** Where the numbers come from. */
export interface ChartData {
  readonly history: History | undefined
  readonly info: GpuInfo | undefined
  readonly courses: StepCourses
}

const BEFORE_MS = 30 * 60_000
const LONGEST_MS = 6 * 3_600_000
const POINTS = 120
const FEW_POINTS = 20
const CLOSER_MS = [10 * 60_000, 3 * 60_000, 60_000]

/** The first chart of its detector with data; null: there is nothing to draw. `info`: of the GPU that it is about. */
export function seriesFor(alert: Alert, charts: readonly DetectorChart[], data: ChartData, now: number): AlertSeries | null {
  for (const chart of charts) {
    const points = chart.of === 'gpu' ? gpuPoints(alert, chart.field, data, now) : stepPoints(alert, chart.field, data.courses, now)
    if (points === null || points.values.filter((value) => value !== null).length < 2) continue
    const { title, unit, limit } = chart
    return { title, unit, ...points, limit: limit?.(alert.finding, data.info) ?? null }
  }
  return null
}

function stepPoints(alert: Alert, field: StepField, courses: StepCourses, now: number): CoursePoints | null {
  const { run, rank } = alert.finding.subject
  if (run === null) return null
  const { from, to } = spanOf(alert, now)
  return peaks(courses.points(run, rank, field, from, to))
}

/** The worst of every few steps: the chart must show a spike of a single step. */
function peaks({ at, values }: CoursePoints): CoursePoints {
  const every = Math.ceil(at.length / POINTS)
  if (every <= 1) return { at, values }
  const kept: { at: number[]; values: Reading[] } = { at: [], values: [] }
  for (let start = 0; start < at.length; start += every) {
    let worst = start
    for (let index = start; index < Math.min(start + every, at.length); index++)
      if ((values[index] ?? Number.NEGATIVE_INFINITY) > (values[worst] ?? Number.NEGATIVE_INFINITY)) worst = index
    kept.at.push(at[worst] ?? 0)
    kept.values.push(values[worst] ?? null)
  }
  return kept
}

function spanOf(alert: Alert, now: number): { readonly from: number; readonly to: number } {
  const to = Math.max(alert.resolvedAt === null ? now : alert.resolvedAt + 60_000, alert.firedAt + 60_000)
  return { from: Math.max(Math.min(alert.finding.since, alert.firedAt) - BEFORE_MS, to - LONGEST_MS), to }
}

/** The GPU by identity, else by number: a run knows only the number of its GPU. */
function gpuPoints(alert: Alert, field: GpuField, { history, info }: ChartData, now: number): CoursePoints | null {
  const gpu = alert.finding.subject.gpu ?? info?.id ?? null
  if (history === undefined || gpu === null) return null
  const { from, to } = spanOf(alert, now)
  const look = (start: number, stepMs: number | null) => {
    const { data } = history.query({ gpu, fields: [field], from: start, to, stepMs })
    const [at, values] = thinned(data[0] ?? [], data[1] ?? [])
    return { at, values, known: values.filter((value) => value !== null).length }
  }
  let best = look(from, Math.max(1000, Math.ceil((to - from) / POINTS / 1000) * 1000))
  // A short problem, or one watched only briefly, shows more at a closer look.
  for (const spanMs of CLOSER_MS) {
    if (best.known >= FEW_POINTS) break
    const closer = look(Math.max(from, Math.min(to, now) - spanMs), null)
    if (closer.known > best.known) best = closer
  }
  return { at: best.at, values: best.values }
}

/** A history may answer finer than asked; a mail need not be. Time before the watch began is left out. */
function thinned(at: readonly Reading[], values: readonly Reading[]): [number[], Reading[]] {
  const isKnown = (value: Reading | undefined) => value !== null && value !== undefined
  const [first, last] = [values.findIndex(isKnown), values.findLastIndex(isKnown)]
  const every = Math.max(1, Math.ceil((last - first + 1) / POINTS))
  const kept: [number[], Reading[]] = [[], []]
  for (let index = Math.max(0, first); index <= last; index += every) {
    const time = at[index] ?? null
    if (time === null) continue
    kept[0].push(time)
    kept[1].push(values[index] ?? null)
  }
  return kept
}
