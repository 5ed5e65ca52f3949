/** Averages what the hub publishes, GPU by GPU, until it is time to send it to MLflow. */
import type { AgentState, HubEvent } from '../core/kinds.ts'
import type { GpuSample, HostSample, Reading } from '../core/model.ts'
import type { MlflowMetric } from './mlflow.ts'

const MOST_KEYS = 1000

interface Mean {
  sum: number
  count: number
}

type Measure<T> = readonly [name: string, of: (from: T) => Reading]

/** MLflow counts a megabyte as a million bytes. */
const megabytes = (bytes: Reading): Reading => (bytes === null ? null : bytes / 1e6)
const percentage = (part: Reading, whole: Reading): Reading => (part === null || !whole ? null : (part / whole) * 100)

const GPU_MEASURES: readonly Measure<GpuSample>[] = [
  ['utilization_percentage', ({ utilizationRatio: ratio }) => (ratio === null ? null : ratio * 100)],
  ['memory_usage_megabytes', ({ memoryUsedBytes }) => megabytes(memoryUsedBytes)],
  ['memory_usage_percentage', ({ memoryUsedBytes, memoryTotalBytes }) => percentage(memoryUsedBytes, memoryTotalBytes)],
  ['power_usage_watts', ({ powerWatts }) => powerWatts],
]

const HOST_MEASURES: readonly Measure<HostSample>[] = [
  ['system/cpu_utilization_percentage', ({ cpuRatio }) => (cpuRatio === null ? null : cpuRatio * 100)],
  ['system/system_memory_usage_megabytes', ({ memoryUsedBytes }) => megabytes(memoryUsedBytes)],
  ['system/system_memory_usage_percentage', ({ memoryUsedBytes, memoryTotalBytes }) => percentage(memoryUsedBytes, memoryTotalBytes)],
  [
    'system/disk_usage_percentage',
    ({ diskTotalBytes: total, diskFreeBytes: free }) => percentage(total === null || free === null ? null : total - free, total),
  ],
  [
    'system/disk_usage_megabytes',
    ({ diskTotalBytes: total, diskFreeBytes: free }) => (total === null || free === null ? null : megabytes(total - free)),
  ],
  ['system/disk_available_megabytes', ({ diskFreeBytes: free }) => megabytes(free)],
]

export class MlflowMetrics {
  readonly #state: AgentState
  readonly #means = new Map<string, Mean>()
  #step = 0

  constructor(state: AgentState) {
    this.#state = state
  }

  accept(event: HubEvent): void {
    if (event.type !== 'tick') return
    const { gpus, host } = event.tick
    for (const sample of gpus) {
      const info = this.#state.gpus().find((view) => view.info.id === sample.gpu)?.info
      if (info === undefined || sample.state === 'lost') continue
      const prefix = `system/gpu_${info.label.replaceAll(':', '_')}_`
      for (const [name, of] of GPU_MEASURES) this.#add(prefix + name, of(sample))
      // MLflow divides by the enforced limit; not every source reports it.
      this.#add(`${prefix}power_usage_percentage`, percentage(sample.powerWatts, info.powerLimitEnforcedWatts ?? info.powerLimitWatts))
    }
    if (host !== null) for (const [name, of] of HOST_MEASURES) this.#add(name, of(host))
  }

  /** The averages since the last time, and a new beginning. */
  take(atMs: number): readonly MlflowMetric[] {
    if (this.#means.size === 0) return []
    const step = this.#step++
    const metrics = Array.from(this.#means, ([key, { sum, count }]) => ({ key, value: sum / count, timestamp: Math.round(atMs), step }))
    this.#means.clear()
    return metrics
  }

  #add(key: string, value: Reading): void {
    if (value === null || !Number.isFinite(value)) return
    const mean = this.#means.get(key)
    if (mean === undefined) {
      if (this.#means.size < MOST_KEYS) this.#means.set(key, { sum: value, count: 1 })
      return
    }
    mean.sum += value
    mean.count++
  }
}
