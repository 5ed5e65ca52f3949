/** The Memory Status Report of each GPU. */
import { countedOnce } from '../core/gpu-totals.ts'
import type { GpuView, HubEvent } from '../core/kinds.ts'
import type { ProcessView, Reading } from '../core/model.ts'

export interface MemoryUsage {
  readonly allocated: Reading
  readonly free: Reading
  readonly total: Reading
  readonly utilization_percent: Reading
  readonly reserved_by_driver: Reading
  /** It is the memory of the host, of which everything on the machine takes its part. */
  readonly shared_with_host: boolean
}

export interface DeviceStatus {
  readonly current_usage: MemoryUsage
  readonly statistics: { readonly avg_utilization: Reading; readonly max_utilization: Reading; readonly samples_count: number }
  readonly name: string | null
  readonly uuid: string
  readonly provenance: string
  readonly state: string
  readonly state_reason: string | null
  readonly gpu_utilization_percent: Reading
  readonly temperature_celsius: Reading
  readonly power_draw_watts: Reading
  readonly processes: readonly { pid: number; type: string; memory_used: Reading; user: string | null; command: string | null }[] | null
}

export interface MemoryStatusReport {
  readonly timestamp: string
  readonly devices: Readonly<Record<string, DeviceStatus>>
  readonly summary: {
    readonly total_devices: number
    readonly total_memory_gb: Reading
    readonly overall_utilization: Reading
    readonly simulated: boolean
  }
}

const GIBIBYTE = 1024 ** 3

/** The report's `statistics`. */
export class MemoryStatistics {
  readonly #byGpu = new Map<string, { sum: number; max: number; count: number }>()

  accept(event: HubEvent): void {
    if (event.type !== 'tick') return
    for (const { gpu, memoryUsedBytes, memoryTotalBytes } of event.tick.gpus) {
      const percent = percentOf(memoryUsedBytes, memoryTotalBytes)
      if (percent === null) continue
      const entry = this.#byGpu.get(gpu) ?? { sum: 0, max: 0, count: 0 }
      entry.sum += percent
      entry.max = Math.max(entry.max, percent)
      entry.count++
      this.#byGpu.set(gpu, entry)
    }
  }

  of(gpu: string): DeviceStatus['statistics'] {
    const entry = this.#byGpu.get(gpu)
    if (!entry) return { avg_utilization: null, max_utilization: null, samples_count: 0 }
    return { avg_utilization: tenths(entry.sum / entry.count), max_utilization: tenths(entry.max), samples_count: entry.count }
  }
}

export function memoryStatusReport(
  at: number,
  gpus: readonly GpuView[],
  processes: readonly ProcessView[],
  statistics: MemoryStatistics,
): MemoryStatusReport {
  const devices: Record<string, DeviceStatus> = {}
  for (const view of gpus) devices[view.info.label] = deviceStatus(view, processes, statistics)
  const whole = countedOnce(gpus)
  const total = sum(whole.map((view) => view.info.memoryTotalBytes))
  const usable = whole.filter((view) => view.sample?.memoryUsedBytes != null && view.sample.memoryTotalBytes != null)
  return {
    timestamp: new Date(at).toISOString(),
    devices,
    summary: {
      total_devices: whole.length,
      total_memory_gb: total === null ? null : Math.round((total / GIBIBYTE) * 10) / 10,
      overall_utilization: tenthsOrNull(
        percentOf(
          sum(usable.map((view) => view.sample?.memoryUsedBytes ?? null)),
          sum(usable.map((view) => view.sample?.memoryTotalBytes ?? null)),
        ),
      ),
      simulated: gpus.some((view) => view.info.provenance === 'simulated'),
    },
  }
}

function deviceStatus({ info, sample }: GpuView, processes: readonly ProcessView[], statistics: MemoryStatistics): DeviceStatus {
  const used = sample?.memoryUsedBytes ?? null
  const total = sample?.memoryTotalBytes ?? info.memoryTotalBytes
  return {
    current_usage: {
      allocated: used,
      free: sample?.memoryFreeBytes ?? null,
      total,
      utilization_percent: tenthsOrNull(percentOf(used, total)),
      reserved_by_driver: sample?.memoryReservedBytes ?? null,
      shared_with_host: info.unifiedMemory,
    },
    statistics: statistics.of(info.id),
    name: info.name,
    uuid: info.id,
    provenance: info.provenance,
    state: sample?.state ?? 'unknown',
    state_reason: sample?.stateReason ?? null,
    gpu_utilization_percent: sample?.utilizationRatio == null ? null : Math.round(sample.utilizationRatio * 1e4) / 100,
    temperature_celsius: sample?.temperatureCelsius ?? null,
    power_draw_watts: sample?.powerWatts ?? null,
    processes:
      sample?.processes == null
        ? null
        : processes
            .filter((process) => process.gpu === info.id)
            .map(({ pid, type, memoryUsedBytes, info: who }) => ({
              pid,
              type,
              memory_used: memoryUsedBytes,
              user: who?.user ?? null,
              command: who?.command?.join(' ') ?? who?.name ?? null,
            })),
  }
}

function percentOf(part: Reading, whole: Reading): Reading {
  return part === null || whole === null || whole <= 0 ? null : (part / whole) * 100
}

function sum(values: readonly Reading[]): Reading {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0)
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

function tenthsOrNull(value: Reading): Reading {
  return value === null ? null : tenths(value)
}
