/** OpenTelemetry metrics as OTLP/HTTP takes them in JSON. GPUs have OpenTelemetry's names; what it has no name for keeps ours. */
import type { AgentState } from '../core/kinds.ts'
import type { MetricFamily, MetricSeries } from '../core/metric-family.ts'
import { double, type HistogramPoint, nanos, type OtlpMetric, type PointTime, text } from './otlp-data.ts'
import { type GpuIo, gpuMetrics } from './otlp-gpu.ts'

export interface OtlpContext {
  readonly state: AgentState
  /** What a scrape would get; GPUs are taken from the state instead. */
  readonly families: readonly MetricFamily[]
  readonly io: GpuIo
  readonly instance: string
  readonly atMs: number
}

export interface OtlpRequest {
  readonly body: string
  readonly samples: number
}

const CUMULATIVE = 2

/** Training, the host and gpuwarden itself: OpenTelemetry has no names for these. */
const OWN_NAMES =
  /^(training_|learning_rate$|gradient_norm$|memory_allocation_mb$|gpuwarden_|host_|gpu_process_memory_bytes$|gpu_predicted_oom_seconds$)/

export function otlpRequest({ state, families, io, instance, atMs }: OtlpContext): OtlpRequest {
  const self = state.self()
  const time = { startTimeUnixNano: nanos(self.startedAt), timeUnixNano: nanos(atMs) }
  const metrics = [
    ...gpuMetrics(state, io, time),
    ...families.filter(({ name }) => OWN_NAMES.test(name)).map((family) => ownMetric(family, time)),
  ]
  const resource = {
    attributes: [
      text('service.name', 'gpuwarden'),
      text('service.version', self.version),
      text('service.instance.id', instance),
      text('host.name', state.hostname),
    ],
  }
  const scopeMetrics = [{ scope: { name: 'gpuwarden', version: self.version }, metrics }]
  return {
    body: JSON.stringify({ resourceMetrics: [{ resource, scopeMetrics }] }),
    samples: metrics.reduce((sum, one) => sum + points(one), 0),
  }
}

function points(metric: OtlpMetric): number {
  return (metric.gauge ?? metric.sum ?? metric.histogram)?.dataPoints.length ?? 0
}

function ownMetric(family: MetricFamily, time: PointTime): OtlpMetric {
  const head = { name: family.name, unit: '', description: family.help }
  if (family.type === 'histogram')
    return { ...head, histogram: { dataPoints: histogramPoints(family, time), aggregationTemporality: CUMULATIVE } }
  const isCounter = family.type === 'counter'
  const dataPoints = family.series.map(({ labels, value }) => ({
    attributes: labels.map(([key, label]) => text(key, label)),
    ...(isCounter ? { startTimeUnixNano: time.startTimeUnixNano } : {}),
    timeUnixNano: time.timeUnixNano,
    asDouble: double(value),
  }))
  return isCounter
    ? { ...head, sum: { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true } }
    : { ...head, gauge: { dataPoints } }
}

/** Prometheus counts everything up to a bound, OpenTelemetry what is between two. */
function histogramPoints({ name, series }: MetricFamily, time: PointTime): HistogramPoint[] {
  const groups = new Map<string, { labels: MetricSeries['labels']; bounds: number[]; counts: number[]; sum: number; total: number }>()
  for (const one of series) {
    const labels = one.labels.filter(([key]) => key !== 'le')
    const key = JSON.stringify(labels)
    const group = groups.get(key) ?? { labels, bounds: [], counts: [], sum: 0, total: 0 }
    groups.set(key, group)
    if (one.name === `${name}_sum`) group.sum = one.value
    else if (one.name === `${name}_count`) group.total = one.value
    else {
      const bound = one.labels.find(([label]) => label === 'le')?.[1] ?? '+Inf'
      if (bound !== '+Inf') group.bounds.push(Number(bound))
      group.counts.push(one.value)
    }
  }
  return Array.from(groups.values(), ({ labels, bounds, counts, sum, total }) => ({
    attributes: labels.map(([key, label]) => text(key, label)),
    ...time,
    count: String(total),
    sum: double(sum),
    bucketCounts: counts.map((count, at) => String(count - (counts[at - 1] ?? 0))),
    explicitBounds: bounds,
  }))
}
