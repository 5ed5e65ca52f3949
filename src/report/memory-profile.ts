/** A profile: the Memory Status Report of a period, with its findings. Bounded memory, however long it takes. */
import type { GpuView, HubEvent } from '../core/kinds.ts'
import type { Finding, ProcessView, Reading } from '../core/model.ts'
import { BoundedSeries, type SeriesColumns } from './bounded-series.ts'
import { FindingLog, type ReportedFinding } from './finding-log.ts'
import { type DeviceStatus, MemoryStatistics, type MemoryStatusReport, memoryStatusReport } from './memory-status.ts'
import { MemoryTrend, type Percentiles } from './memory-trend.ts'
import { ProcessPeaks } from './process-peaks.ts'

export interface ProcessPeakRow {
  readonly pid: number
  readonly user: string | null
  readonly command: string | null
  readonly peak: number
  readonly peak_at: string
  readonly last: number
  readonly first_seen: string
  readonly last_seen: string
}

export interface ProfiledDevice extends DeviceStatus {
  readonly statistics: DeviceStatus['statistics'] & {
    readonly min_utilization: Reading
    /** In percent of the device, to a tenth. */
    readonly percentiles: Percentiles | null
  }
  /** Bytes over the whole period; `growth_per_minute` is the least-squares slope. */
  readonly memory: {
    readonly first: Reading
    readonly last: Reading
    readonly min: Reading
    readonly max: Reading
    readonly max_at: string | null
    readonly growth_per_minute: Reading
  }
  readonly process_peaks: readonly ProcessPeakRow[]
}

export interface MemoryProfileReport extends Omit<MemoryStatusReport, 'devices' | 'summary'> {
  readonly devices: Readonly<Record<string, ProfiledDevice>>
  readonly summary: MemoryStatusReport['summary'] & {
    readonly duration_seconds: number
    readonly samples_count: number
    readonly findings: number
  }
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly findings: readonly ReportedFinding[]
  /** Left out because there were too many. */
  readonly left_out: { readonly processes: number; readonly findings: number }
}

interface Followed {
  readonly trend: MemoryTrend
  readonly memory: BoundedSeries
  readonly utilization: BoundedSeries
}

export class MemoryProfile {
  readonly #statistics = new MemoryStatistics()
  readonly #gpus = new Map<string, Followed>()
  readonly #peaks = new ProcessPeaks()
  readonly findings = new FindingLog()
  #firstAt: Reading = null
  #lastAt: Reading = null

  accept(event: HubEvent): void {
    this.#statistics.accept(event)
    if (event.type !== 'tick') return
    const { at, gpus, processes } = event.tick
    if (gpus.length === 0) return
    this.#firstAt ??= at
    this.#lastAt = at
    for (const { gpu, memoryUsedBytes, memoryTotalBytes, utilizationRatio } of gpus) {
      const followed = this.#follow(gpu)
      if (memoryUsedBytes !== null) followed.trend.push(at, memoryUsedBytes, memoryTotalBytes)
      followed.memory.push(at, memoryUsedBytes)
      followed.utilization.push(at, utilizationRatio)
    }
    this.#peaks.accept(at, processes)
  }

  acceptFinding(finding: Finding): void {
    this.findings.accept(finding)
  }

  /** null: no GPU was sampled yet. */
  get lastAt(): Reading {
    return this.#lastAt
  }

  memoryOf(gpu: string): SeriesColumns {
    return this.#follow(gpu).memory.columns()
  }

  utilizationOf(gpu: string): SeriesColumns {
    return this.#follow(gpu).utilization.columns()
  }

  report(gpus: readonly GpuView[], processes: readonly ProcessView[], at: number): MemoryProfileReport {
    const status = memoryStatusReport(at, gpus, processes, this.#statistics)
    const devices: Record<string, ProfiledDevice> = {}
    let samples = 0
    for (const { info } of gpus) {
      const device = status.devices[info.label]
      if (device === undefined) continue
      devices[info.label] = this.#profiled(device, info.id)
      samples += device.statistics.samples_count
    }
    const findings = this.findings.reported()
    return {
      timestamp: status.timestamp,
      devices,
      summary: {
        ...status.summary,
        duration_seconds: ((this.#lastAt ?? 0) - (this.#firstAt ?? 0)) / 1000,
        samples_count: samples,
        findings: findings.length,
      },
      started_at: isoOrNull(this.#firstAt),
      ended_at: isoOrNull(this.#lastAt),
      findings,
      left_out: { processes: this.#peaks.leftOut, findings: this.findings.leftOut },
    }
  }

  #profiled(device: DeviceStatus, gpu: string): ProfiledDevice {
    const { trend } = this.#follow(gpu)
    const percentiles = trend.percentiles()
    const known = trend.count > 0
    const total = device.current_usage.total
    const slope = trend.bytesPerSecond
    return {
      current_usage: device.current_usage,
      statistics: {
        ...device.statistics,
        min_utilization: known && total !== null && total > 0 ? Math.round((trend.minBytes / total) * 1000) / 10 : null,
        percentiles,
      },
      memory: {
        first: known ? trend.firstBytes : null,
        last: known ? trend.lastBytes : null,
        min: known ? trend.minBytes : null,
        max: known ? trend.maxBytes : null,
        max_at: known ? isoOrNull(trend.maxAt) : null,
        growth_per_minute: slope === null ? null : Math.round(slope * 60),
      },
      process_peaks: this.#peaks.of(gpu).map((one) => ({
        pid: one.pid,
        user: one.user,
        command: one.command,
        peak: one.peakBytes,
        peak_at: new Date(one.peakAt).toISOString(),
        last: one.lastBytes,
        first_seen: new Date(one.firstSeenAt).toISOString(),
        last_seen: new Date(one.lastSeenAt).toISOString(),
      })),
      name: device.name,
      uuid: device.uuid,
      provenance: device.provenance,
      state: device.state,
      state_reason: device.state_reason,
      gpu_utilization_percent: device.gpu_utilization_percent,
      temperature_celsius: device.temperature_celsius,
      power_draw_watts: device.power_draw_watts,
      processes: device.processes,
    }
  }

  #follow(gpu: string): Followed {
    const known = this.#gpus.get(gpu)
    if (known !== undefined) return known
    const made: Followed = { trend: new MemoryTrend(), memory: new BoundedSeries(), utilization: new BoundedSeries() }
    this.#gpus.set(gpu, made)
    return made
  }
}

function isoOrNull(at: Reading): string | null {
  return at === null ? null : new Date(at).toISOString()
}
