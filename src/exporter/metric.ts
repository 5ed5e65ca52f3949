import type { GpuView } from '../core/kinds.ts'
import type { MetricType } from '../core/metric-family.ts'
import type { GpuEvent, GpuInfo, GpuReadings, Reading } from '../core/model.ts'
import type { Labels } from './labels.ts'

/** `text` is Prometheus' format 0.0.4. */
export type Format = 'text' | 'openmetrics'

export interface Family {
  readonly name: string
  readonly type: MetricType
  /** For people, and for OpenMetrics where the name ends in it; '' for a plain number. */
  readonly unit: string
  readonly help: string
  /** Labels beyond those of its table, for the documentation. */
  readonly labels: readonly string[]
  readonly heading: Readonly<Record<Format, string>>
}

/** Takes one series: its labels, its value, and what a histogram adds to the name. */
export type Emit = (labels: Labels, value: Reading, suffix?: string) => void

/** A family whose series are found by looking at the context. */
export interface Metric<Context> extends Family {
  collect(context: Context, emit: Emit): void
}

export interface GpuSubject {
  readonly info: GpuInfo
  readonly view: GpuView
  /** Whether its readings may be shown as today's: the sample is fresh and the GPU is on the bus. */
  readonly current: boolean
  /** Every reading is null when it is not `current`. */
  readonly readings: GpuReadings
  readonly xid: GpuEvent | null
}

export interface GpuSeries {
  /** Besides the table's own. */
  readonly labels?: (info: GpuInfo) => Labels
  readonly value: (gpu: GpuSubject) => Reading
}

/** A family with the same series for every GPU, so that all but the values can be prepared. */
export interface GpuMetric extends Family {
  readonly series: readonly GpuSeries[]
}

function describe(type: MetricType, name: string, unit: string, help: string, labels: readonly string[]): Family {
  return {
    name,
    type,
    unit,
    help,
    labels,
    heading: { text: textHeading(type, name, help), openmetrics: openHeading(type, name, unit, help) },
  }
}

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function textHeading(type: MetricType, name: string, help: string): string {
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
}

/** OpenMetrics allows a counter only with `_total`; other people's counters without it are of unknown type there. */
function openHeading(type: MetricType, name: string, unit: string, help: string): string {
  const isTotal = type === 'counter' && name.endsWith('_total')
  const family = isTotal ? name.slice(0, -'_total'.length) : name
  const openType = type === 'counter' && !isTotal ? 'unknown' : type
  const unitLine = unit !== '' && family.endsWith(`_${unit}`) ? `# UNIT ${family} ${unit}\n` : ''
  return `# TYPE ${family} ${openType}\n${unitLine}# HELP ${family} ${escapeHelp(help).replaceAll('"', '\\"')}\n`
}

type Value = (gpu: GpuSubject) => Reading

export function gpuGauge(name: string, unit: string, help: string, value: Value): GpuMetric {
  return { ...describe('gauge', name, unit, help, []), series: [{ value }] }
}

export function gpuCounter(name: string, unit: string, help: string, value: Value): GpuMetric {
  return { ...describe('counter', name, unit, help, []), series: [{ value }] }
}

/** Several series for each GPU, distinguished by `labels`. */
export function gpuGauges(name: string, unit: string, help: string, labels: readonly string[], series: readonly GpuSeries[]): GpuMetric {
  return { ...describe('gauge', name, unit, help, labels), series }
}

type Collect<Context> = Metric<Context>['collect']

export function metric<Context>(
  type: MetricType,
  name: string,
  unit: string,
  help: string,
  labels: readonly string[],
  collect: Collect<Context>,
): Metric<Context> {
  return { ...describe(type, name, unit, help, labels), collect }
}
