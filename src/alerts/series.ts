/** The chart of an alert: what its detector looked at, around the time of the trouble. */
import type { Alert, AlertSeries, History } from '../core/kinds.ts'
import type { GpuField, GpuInfo, Reading } from '../core/model.ts'
import type { CoursePoints, StepCourses, StepField } from './step-courses.ts'

interface Chart {
  readonly field: GpuField
  readonly title: string
  /** A word for base units; whoever draws it writes them as people do. */
  readonly unit: 'bytes' | 'ratio' | 'hertz' | 'celsius' | 'count'
  readonly limit: (alert: Alert, info: GpuInfo | undefined) => Reading
}

const BEFORE_MS = 30 * 60_000
const LONGEST_MS = 6 * 3_600_000
const POINTS = 120
const FEW_POINTS = 20
const CLOSER_MS = [10 * 60_000, 3 * 60_000, 60_000]

const none = () => null
const memory: Chart = {
  field: 'memoryUsedBytes',
  title: 'GPU memory in use',
  unit: 'bytes',
  limit: (_alert, info) => info?.memoryTotalBytes ?? null,
}
const utilization: Chart = { field: 'utilizationRatio', title: 'GPU utilization', unit: 'ratio', limit: none }
const clock: Chart = {
  field: 'smClockHertz',
  title: 'SM clock',
  unit: 'hertz',
  limit: (_alert, info) => info?.smClockMaxHertz ?? null,
}
const heat: Chart = {
  field: 'temperatureCelsius',
  title: 'GPU temperature',
  unit: 'celsius',
  limit: ({ finding }, info) => {
    const said = finding.evidence.limit_celsius
    return typeof said === 'number' ? said : (info?.temperatureSlowdownCelsius ?? null)
  },
}
const count = (field: GpuField, title: string): Chart => ({ field, title, unit: 'count', limit: none })

/** By detector or level rule. What is not here has nothing to draw. */
const CHARTS: Readonly<Record<string, Chart>> = {
  memory,
  memory_pressure: memory,
  oom: memory,
  leak: memory,
  change: memory,
  intruder: memory,
  idle_holding: utilization,
  zombie: memory,
  stall: utilization,
  slow_data: utilization,
  thermal: heat,
  throttle: clock,
  power_brake: clock,
  gpu_lost: utilization,
  ecc: count('eccUncorrectedVolatileCount', 'Uncorrected ECC errors'),
  remap: count('remappedUncorrectableRows', 'Rows remapped after uncorrectable errors'),
}

interface StepChart {
  readonly field: StepField
  readonly title: string
  readonly unit: 'count' | 'seconds'
  readonly limit: (alert: Alert) => Reading
}

const loss: StepChart = { field: 'loss', title: 'Loss', unit: 'count', limit: none }
const stepTime: StepChart = { field: 'stepSeconds', title: 'Time of a step', unit: 'seconds', limit: none }

/** Of what is about a run. */
const STEP_CHARTS: Readonly<Record<string, StepChart>> = {
  loss_nan: loss,
  loss_spike: loss,
  loss_plateau: loss,
  grad_explosion: {
    field: 'gradientNorm',
    title: 'Norm of the gradients',
    unit: 'count',
    limit: ({ finding }) => (typeof finding.evidence.level === 'number' ? finding.evidence.level : null),
  },
  stall: stepTime,
  straggler: stepTime,
  slow_data: stepTime,
}

/** null: it is not about a run, or too little is known of its steps. */
export function stepSeriesFor(alert: Alert, courses: StepCourses, now: number): AlertSeries | null {
  const { detector, subject } = alert.finding
  const chart = STEP_CHARTS[detector]
  if (!chart || subject.run === null) return null
  const { from, to } = spanOf(alert, now)
  const { at, values } = peaks(courses.points(subject.run, subject.rank, chart.field, from, to))
  if (values.filter((value) => value !== null).length < 2) return null
  return { title: chart.title, unit: chart.unit, at, values, limit: chart.limit(alert) }
}

/** The worst of so many steps each: a spike of a single step is what the chart is for. */
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

/** `info`: of the GPU that it is about, by identity or else by number; a run knows only the number of its GPU. */
export function seriesFor(alert: Alert, history: History, info: GpuInfo | undefined, now: number): AlertSeries | null {
  const chart = CHARTS[alert.finding.detector]
  const gpu = alert.finding.subject.gpu ?? info?.id ?? null
  if (!chart || gpu === null) return null
  const { from, to } = spanOf(alert, now)
  const look = (start: number, stepMs: number | null) => {
    const { data } = history.query({ gpu, fields: [chart.field], from: start, to, stepMs })
    const [at, values] = thinned(data[0] ?? [], data[1] ?? [])
    return { at, values, known: values.filter((value) => value !== null).length }
  }
  let best = look(from, Math.max(1000, Math.ceil((to - from) / POINTS / 1000) * 1000))
  // What has not been watched for long, or is over quickly, has the more to show the closer one looks.
  for (const spanMs of CLOSER_MS) {
    if (best.known >= FEW_POINTS) break
    const closer = look(Math.max(from, Math.min(to, now) - spanMs), null)
    if (closer.known > best.known) best = closer
  }
  if (best.known < 2) return null
  return { title: chart.title, unit: chart.unit, at: best.at, values: best.values, limit: chart.limit(alert, info) }
}

/** A history may answer finer than it was asked; a mail need not be. What was not watched yet is no part of it. */
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
