/** Collects the lines of a log folder into what a report shows. Bounded, whatever the length. */
import type { Finding, GpuInfo, Reading, TrainingStep } from '../core/model.ts'
import { fromColumn, GPU_COLUMNS, type JsonRecord } from '../core/record.ts'
import type { RecordingKind } from '../core/recording/file.ts'
import { parseObject, parseTimestamp } from '../core/recording/json.ts'
import { parseDeviceLine, parseStepLine } from '../core/recording/line.ts'
import { TimeAccount } from '../core/run-time.ts'
import { PhaseSums, phasesOf } from '../core/step-phases.ts'
import { LossCourse } from './loss-course.ts'
import type { BucketSeries, TimeBuckets } from './training-buckets.ts'
import { FindingReader } from './training-findings.ts'
import { GpuUse } from './training-gpu-use.ts'
import {
  countStep,
  GPU_SERIES,
  type GpuSeriesName,
  type Recorded,
  type RecordedGpu,
  type RecordedRank,
  STEP_SERIES,
} from './training-recorded.ts'

const MOST_GPUS = 128
const MOST_RANKS = 32
const MOST_PIDS = 16
const MOST_PHASES = 16
const MEBIBYTE = 1024 * 1024

export type LineKind = RecordingKind | 'findings'

const COLUMNS = new Map(GPU_COLUMNS.map((column) => [column.field, column]))
const scaled = (record: JsonRecord, field: GpuSeriesName | 'energyJoules' | 'clockEventReasons'): Reading => {
  const column = COLUMNS.get(field)
  const value = column === undefined ? null : record[column.column]
  return column !== undefined && typeof value === 'number' && Number.isFinite(value) ? fromColumn(value, column.scale) : null
}

export class ReportReader {
  readonly #buckets: TimeBuckets
  readonly #from: number
  readonly #to: number
  readonly #ownPids: ReadonlySet<number>
  readonly #gpus = new Map<string, RecordedGpu>()
  readonly #infos = new Map<string, GpuInfo>()
  readonly #ranks = new Map<string, RecordedRank>()
  readonly #findings = new FindingReader()
  readonly faults: string[] = []
  #firstAt = Number.POSITIVE_INFINITY
  #lastAt = Number.NEGATIVE_INFINITY
  #lines = 0
  skipped = 0

  constructor(buckets: TimeBuckets, from: number, to: number, ownPids: ReadonlySet<number> = new Set()) {
    this.#buckets = buckets
    this.#from = from
    this.#to = to
    this.#ownPids = ownPids
  }

  take(kind: LineKind, line: string): void {
    this.#lines++
    const isTaken =
      kind === 'gpu_metrics'
        ? this.#takeGpu(line)
        : kind === 'training_metrics'
          ? this.#takeStep(line)
          : kind === 'gpu_devices'
            ? this.#takeDevice(line)
            : this.#findings.take(line)
    if (!isTaken) this.skipped++
  }

  /** What the detectors say of a recording without findings. */
  takeFinding(finding: Finding): void {
    this.#findings.accept(finding)
  }

  finish(): Recorded {
    for (const [id, info] of this.#infos) {
      const gpu = this.#gpus.get(id)
      if (!gpu) continue
      gpu.index = info.index
      gpu.label = info.label
      gpu.name = info.name ?? gpu.name
      gpu.totalBytes ??= info.memoryTotalBytes
      if (info.provenance === 'simulated') gpu.isSimulated = true
    }
    const gpus = [...this.#gpus.values()].sort((a, b) => (a.index ?? 0) - (b.index ?? 0))
    const most = Math.max(0, ...gpus.map(({ use }) => use.summary().samples), ...Array.from(this.#ranks.values(), ({ steps }) => steps))
    if (most > 1) this.#buckets.coarsen(Math.min(60_000, (this.#lastAt - this.#firstAt) / most / 2))
    return {
      buckets: this.#buckets,
      gpus,
      ranks: [...this.#ranks.values()].sort((a, b) => a.firstAt - b.firstAt || a.rank - b.rank),
      findings: this.#findings.between(this.#from, this.#to),
      from: this.#firstAt,
      to: this.#lastAt,
      lines: this.#lines,
      skipped: this.skipped,
      faults: this.faults,
    }
  }

  #isOutside(at: number): boolean {
    if (at < this.#from || at > this.#to) return true
    if (at < this.#firstAt) this.#firstAt = at
    if (at > this.#lastAt) this.#lastAt = at
    return false
  }

  #takeGpu(line: string): boolean {
    const record = parseObject(line)
    if (typeof record === 'string') return false
    const at = parseTimestamp(record.timestamp)
    if (at === null) return false
    if (this.#isOutside(at)) return true
    const gpu = this.#gpu(record)
    if (!gpu) return false
    const index = this.#buckets.indexOf(at)
    const figures = {
      utilizationRatio: scaled(record, 'utilizationRatio'),
      tensorActiveRatio: scaled(record, 'tensorActiveRatio'),
      memoryUsedBytes: scaled(record, 'memoryUsedBytes'),
      memoryReservedBytes: scaled(record, 'memoryReservedBytes'),
      temperatureCelsius: scaled(record, 'temperatureCelsius'),
      powerWatts: scaled(record, 'powerWatts'),
      energyJoules: scaled(record, 'energyJoules'),
      clockEventReasons: scaled(record, 'clockEventReasons'),
    }
    gpu.use.accept(at, figures)
    for (const name of GPU_SERIES) {
      const value = figures[name]
      if (value !== null) this.#buckets.add(gpu.series[name], index, value)
    }
    if (typeof record.memory_total_mb === 'number') gpu.totalBytes = record.memory_total_mb * MEBIBYTE
    if (Array.isArray(record.processes)) {
      for (const process of record.processes as JsonRecord[]) this.#takeProcess(gpu, index, process)
      this.#takeOwn(gpu, record.processes as JsonRecord[])
    }
    return true
  }

  #takeOwn(gpu: RecordedGpu, processes: readonly JsonRecord[]): void {
    if (this.#ownPids.size === 0) return
    let [bytes, isSeen] = [0, false]
    for (const { pid, memory_used_mb } of processes) {
      if (typeof pid !== 'number' || !this.#ownPids.has(pid) || typeof memory_used_mb !== 'number') continue
      bytes += memory_used_mb * MEBIBYTE
      isSeen = true
    }
    if (isSeen) gpu.ownPeakBytes = Math.max(gpu.ownPeakBytes ?? 0, bytes)
  }

  #takeProcess(gpu: RecordedGpu, index: number, { pid, memory_used_mb, host_memory_mb }: JsonRecord): void {
    if (typeof pid !== 'number' || typeof memory_used_mb !== 'number') return
    if (typeof host_memory_mb === 'number' && (gpu.residentPeaks.has(pid) || gpu.residentPeaks.size < MOST_PIDS))
      gpu.residentPeaks.set(pid, Math.max(gpu.residentPeaks.get(pid) ?? 0, host_memory_mb * MEBIBYTE))
    let series = gpu.pids.get(pid)
    if (!series) {
      if (gpu.pids.size >= MOST_PIDS) return
      series = this.#buckets.series()
      gpu.pids.set(pid, series)
    }
    this.#buckets.add(series, index, memory_used_mb * MEBIBYTE)
  }

  #gpu(record: JsonRecord): RecordedGpu | null {
    const index = typeof record.gpu_index === 'number' ? record.gpu_index : null
    const id = typeof record.gpu_uuid === 'string' ? record.gpu_uuid : index === null ? null : `replay-gpu-${index}`
    if (id === null) return null
    const known = this.#gpus.get(id)
    if (known || this.#gpus.size >= MOST_GPUS) return known ?? null
    const gpu: RecordedGpu = {
      id,
      index,
      name: typeof record.gpu_name === 'string' ? record.gpu_name : null,
      label: typeof record.gpu_label === 'string' ? record.gpu_label : String(index ?? this.#gpus.size),
      totalBytes: null,
      isSimulated: record.provenance === 'simulated',
      use: new GpuUse(),
      ownPeakBytes: null,
      series: this.#seriesOf(GPU_SERIES),
      pids: new Map(),
      residentPeaks: new Map(),
    }
    this.#gpus.set(id, gpu)
    return gpu
  }

  #takeStep(line: string): boolean {
    const step = parseStepLine(line)
    if (typeof step === 'string') return false
    if (this.#isOutside(step.at)) return true
    const key = `${step.rank}@${step.run}`
    let rank = this.#ranks.get(key)
    if (!rank) {
      if (this.#ranks.size >= MOST_RANKS) return true
      rank = {
        run: step.run,
        rank: step.rank,
        steps: 0,
        lastStep: step.step,
        firstAt: step.at,
        lastAt: step.at,
        loss: null,
        bestLoss: null,
        secondsSum: 0,
        secondsCount: 0,
        throughputSum: 0,
        throughputCount: 0,
        samples: null,
        tokens: null,
        countedSeconds: 0,
        peakAllocated: null,
        time: new TimeAccount(),
        losses: new LossCourse(),
        series: this.#seriesOf(STEP_SERIES),
        phases: new PhaseSums(),
        phaseSeries: new Map(),
      }
      this.#ranks.set(key, rank)
    }
    countStep(rank, step)
    const index = this.#buckets.indexOf(step.at)
    for (const name of STEP_SERIES) {
      const value = step[name]
      if (value !== null) this.#buckets.add(rank.series[name], index, value)
    }
    if (rank.rank === 0) this.#takePhases(rank, step, index)
    return true
  }

  #takePhases({ phaseSeries }: RecordedRank, step: TrainingStep, index: number): void {
    const phases = phasesOf(step)
    if (phases === null) return
    for (const name in phases) if (!phaseSeries.has(name) && phaseSeries.size < MOST_PHASES) phaseSeries.set(name, this.#buckets.series())
    // A phase that this step did not have took none of it.
    for (const [name, series] of phaseSeries) this.#buckets.add(series, index, phases[name] ?? 0)
  }

  #takeDevice(line: string): boolean {
    const device = parseDeviceLine(line)
    if (typeof device === 'string') return false
    this.#infos.set(device.device.id, device.device)
    return true
  }

  #seriesOf<Name extends string>(names: readonly Name[]): Record<Name, BucketSeries> {
    return Object.fromEntries(names.map((name) => [name, this.#buckets.series()])) as Record<Name, BucketSeries>
  }
}
