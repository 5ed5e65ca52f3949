/** Keeps what the stream says, from whichever side it comes, and gives it as data to draw. */
import type { GpuView, HubEvent, Tick } from '../core/kinds.ts'
import type { Finding, GpuInfo, GpuSample, HostSample, ProcessView, Provenance, Reading, SourceHealth } from '../core/model.ts'
import { type GpuData, type LedgerLine, processKey, type ReplayData, type ScreenData } from './screen-data.ts'
import { Series } from './series.ts'
import { TrainingRuns } from './training-runs.ts'

export interface LedgerQuestion {
  readonly totalBytes: Reading
  readonly usedBytes: Reading
  readonly driverReservedBytes: Reading
  readonly processes: readonly { readonly pid: number; readonly memoryUsedBytes: Reading }[] | null
  readonly allocators: readonly {
    readonly pid: Reading
    readonly allocatedBytes: Reading
    readonly reservedBytes: Reading
    readonly activeBytes: Reading
    readonly inactiveSplitBytes: Reading
  }[]
}

export interface LiveStateOptions {
  readonly now: () => number
  /** Which GPUs to show, by index; null for all. */
  readonly devices: ReadonlySet<number> | null
  readonly intervalMs: number
  readonly ledger: (question: LedgerQuestion) => readonly LedgerLine[] | null
}

interface KnownGpu {
  info: GpuInfo
  source: string | null
  sample: GpuSample | null
  arrivedAt: number
  processes: readonly ProcessView[]
  readonly utilization: Series
  readonly memory: Series
}

const SHORTEST_STEP_MS = 1000
const MOST_RESOLVED = 100
const MOST_FINDINGS = 1024
const MOST_PROCESS_SERIES = 1024
const RANK = { critical: 0, warning: 1, info: 2 } as const

export class LiveState {
  hostname = ''
  origin = ''
  linkLost: ScreenData['linkLost'] = null
  replay: ReplayData | null = null
  alerts: ScreenData['alerts'] = null
  overhead: ScreenData['overhead'] = null
  isReadonly = false
  readonly #options: LiveStateOptions
  readonly #stepMs: number
  readonly #gpus = new Map<string, KnownGpu>()
  readonly #findings = new Map<string, Finding>()
  readonly #processMemory = new Map<string, Series>()
  #resolved: Finding[] = []
  #runs = new TrainingRuns()
  #health: readonly SourceHealth[] = []
  #host: { sample: HostSample; arrivedAt: number; source: string } | null = null
  readonly #hostCpu: Series
  readonly #hostMemory: Series
  #lastGpuAt: number | null = null
  #lastAt = 0

  constructor(options: LiveStateOptions) {
    this.#options = options
    this.#stepMs = Math.max(SHORTEST_STEP_MS, options.intervalMs)
    this.#hostCpu = new Series(this.#stepMs)
    this.#hostMemory = new Series(this.#stepMs)
  }

  accept(event: HubEvent): void {
    const now = this.#options.now()
    if (event.type === 'tick') this.#tick(event.tick, now)
    else if (event.type === 'devices') this.#takeDevices(event.devices)
    else if (event.type === 'health') this.#health = event.health
    else if (event.type === 'finding') this.#takeFinding(event.finding)
    else if (event.type === 'run') this.#runs.acceptRun(event.run, now)
    else this.#runs.acceptSteps(event.steps, now)
  }

  /** What an agent knew before we came; `ageMs` counts from its own clock, so that clocks need not agree. */
  begin(gpus: readonly GpuView[], processes: readonly ProcessView[], host: { sample: HostSample; ageMs: number } | null): void {
    const now = this.#options.now()
    this.#takeDevices(gpus.map((view) => view.info))
    for (const { info, sample, ageMs } of gpus) {
      const gpu = this.#gpus.get(info.id)
      if (!gpu || sample === null) continue
      gpu.sample = sample
      gpu.arrivedAt = now - (ageMs ?? 0)
      gpu.processes = processes.filter((process) => process.gpu === info.id)
      this.#lastGpuAt = Math.max(this.#lastGpuAt ?? 0, gpu.arrivedAt)
    }
    if (host) this.#host = { sample: host.sample, arrivedAt: now - host.ageMs, source: 'host' }
  }

  /** Readings from before, for the graphs. */
  backfill(gpu: string, at: readonly Reading[], utilization: readonly Reading[], memoryRatio: readonly Reading[]): void {
    const known = this.#gpus.get(gpu)
    if (!known) return
    at.forEach((time, index) => {
      if (time === null) return
      known.utilization.push(time, utilization[index] ?? null)
      known.memory.push(time, memoryRatio[index] ?? null)
    })
  }

  backfillLoss(run: string, losses: readonly number[]): void {
    this.#runs.backfill(run, losses, this.#options.now())
  }

  setHealth(health: readonly SourceHealth[]): void {
    this.#health = health
  }

  get hasSample(): boolean {
    return this.#lastGpuAt !== null
  }

  gpuIds(): readonly string[] {
    return this.#shown().map((gpu) => gpu.info.id)
  }

  resetHistory(): void {
    for (const gpu of this.#gpus.values()) {
      gpu.utilization.clear()
      gpu.memory.clear()
    }
    this.#processMemory.clear()
    this.#hostCpu.clear()
    this.#hostMemory.clear()
    this.#runs.clearHistory()
    this.#resolved = []
  }

  /** Before a recording is read from its beginning again. */
  forget(): void {
    this.#gpus.clear()
    this.#findings.clear()
    this.#processMemory.clear()
    this.#resolved = []
    this.#runs = new TrainingRuns()
    this.#host = null
    this.#hostCpu.clear()
    this.#hostMemory.clear()
    this.#lastGpuAt = null
  }

  data(want: { readonly columns: number; readonly gpu: string | null }): ScreenData {
    const now = this.#options.now()
    const findings = [...this.#findings.values()].sort((a, b) => RANK[a.severity] - RANK[b.severity] || b.since - a.since)
    const shown = this.#shown()
    const gpus = shown.map((gpu): GpuData => {
      const view = this.#view(gpu, now)
      return {
        view,
        utilization: gpu.utilization.tail(want.columns),
        memory: gpu.memory.tail(want.columns),
        phase: gpu.utilization.phase,
        stepMs: this.#stepMs,
        forecast: this.#forecast(gpu, findings),
        ledger: want.gpu === gpu.info.id || shown.length === 1 ? this.#ledger(gpu, shown.length === 1) : null,
      }
    })
    return {
      now,
      at: this.replay?.at ?? now,
      hostname: this.hostname,
      origin: this.origin,
      provenance: this.#provenance(shown),
      ageMs: this.#lastGpuAt === null ? null : Math.max(0, now - this.#lastGpuAt),
      intervalMs: this.#health.find((source) => source.source !== 'host')?.intervalMs ?? this.#options.intervalMs,
      linkLost: this.linkLost,
      gpus,
      processes: shown.flatMap((gpu) => gpu.processes),
      processMemory: (key) => this.#processMemory.get(key)?.tail(want.columns) ?? [],
      host: this.#host && {
        sample: this.#host.sample,
        live: this.#isLive(this.#host.source, now - this.#host.arrivedAt),
        cpu: this.#hostCpu.tail(want.columns),
        memory: this.#hostMemory.tail(want.columns),
      },
      health: this.#health,
      findings,
      resolved: this.#resolved,
      alerts: this.alerts,
      runs: this.#runs.views(now, findings),
      overhead: this.overhead,
      replay: this.replay,
      isReadonly: this.isReadonly,
    }
  }

  #tick(tick: Tick, now: number): void {
    this.#lastAt = tick.at
    if (tick.gpus.length > 0) this.#lastGpuAt = now
    for (const sample of tick.gpus) {
      const gpu = this.#gpus.get(sample.gpu)
      if (!gpu) continue
      gpu.sample = sample
      gpu.source = tick.source
      gpu.arrivedAt = now
      gpu.processes = tick.processes.filter((process) => process.gpu === sample.gpu)
      gpu.utilization.push(sample.at, sample.utilizationRatio)
      gpu.memory.push(sample.at, ratio(sample.memoryUsedBytes, sample.memoryTotalBytes))
    }
    for (const process of tick.processes) this.#noteProcess(process, tick.at)
    if (this.#processMemory.size > MOST_PROCESS_SERIES) this.#pruneProcesses()
    if (!tick.host) return
    this.#host = { sample: tick.host, arrivedAt: now, source: tick.source }
    this.#hostCpu.push(tick.at, tick.host.cpuRatio)
    this.#hostMemory.push(tick.at, ratio(tick.host.memoryUsedBytes, tick.host.memoryTotalBytes))
  }

  #noteProcess(process: ProcessView, at: number): void {
    const key = processKey(process)
    let series = this.#processMemory.get(key)
    if (!series) {
      series = new Series(this.#stepMs)
      this.#processMemory.set(key, series)
    }
    series.push(at, process.memoryUsedBytes)
  }

  #pruneProcesses(): void {
    const alive = new Set([...this.#gpus.values()].flatMap((gpu) => gpu.processes.map(processKey)))
    for (const key of this.#processMemory.keys()) if (!alive.has(key)) this.#processMemory.delete(key)
  }

  #takeDevices(devices: readonly GpuInfo[]): void {
    const listed = new Set(devices.map((device) => device.id))
    for (const id of this.#gpus.keys()) if (!listed.has(id)) this.#gpus.delete(id)
    for (const info of devices) {
      const known = this.#gpus.get(info.id)
      if (known) known.info = info
      else
        this.#gpus.set(info.id, {
          info,
          source: null,
          sample: null,
          arrivedAt: 0,
          processes: [],
          utilization: new Series(this.#stepMs),
          memory: new Series(this.#stepMs),
        })
    }
  }

  #takeFinding(finding: Finding): void {
    if (finding.state === 'resolved') {
      if (this.#findings.delete(finding.fingerprint)) this.#resolved = [finding, ...this.#resolved].slice(0, MOST_RESOLVED)
    } else if (this.#findings.size < MOST_FINDINGS || this.#findings.has(finding.fingerprint))
      this.#findings.set(finding.fingerprint, finding)
  }

  #shown(): KnownGpu[] {
    const { devices } = this.#options
    const all = [...this.#gpus.values()]
    return devices === null ? all : all.filter((gpu) => devices.has(gpu.info.index))
  }

  #view({ info, sample, source, arrivedAt }: KnownGpu, now: number): GpuView {
    const ageMs = sample === null ? null : Math.max(0, now - arrivedAt)
    return { info, sample, ageMs, live: ageMs !== null && this.#isLive(source, ageMs) }
  }

  #isLive(source: string | null, ageMs: number): boolean {
    if (this.replay) return true
    if (this.linkLost) return false
    const health = this.#health.find((one) => one.source === source)
    if (!health) return ageMs <= 3 * this.#stepMs
    return health.state === 'ok' && ageMs <= 2 * health.intervalMs + health.deadlineMs
  }

  #forecast({ info }: KnownGpu, findings: readonly Finding[]): Finding | null {
    return (
      findings.find(
        (finding) =>
          finding.detector === 'oom' &&
          finding.predictedAt !== null &&
          (finding.subject.gpu === info.id || finding.subject.gpuIndex === info.index),
      ) ?? null
    )
  }

  #ledger({ info, sample }: KnownGpu, isOnlyGpu: boolean): readonly LedgerLine[] | null {
    if (!sample) return null
    return this.#options.ledger({
      totalBytes: sample.memoryTotalBytes,
      usedBytes: sample.memoryUsedBytes,
      driverReservedBytes: sample.memoryReservedBytes,
      processes: sample.processes,
      allocators: this.#runs.on(info, isOnlyGpu).map(({ run, step }) => ({
        pid: run?.pid ?? null,
        allocatedBytes: step.memoryAllocatedBytes,
        reservedBytes: step.memoryReservedBytes,
        activeBytes: step.memoryActiveBytes,
        inactiveSplitBytes: step.memoryInactiveSplitBytes,
      })),
    })
  }

  /** Any simulated card makes the whole screen say so. */
  #provenance(gpus: readonly KnownGpu[]): Provenance {
    if (gpus.some((gpu) => gpu.info.provenance === 'simulated')) return 'simulated'
    if (this.replay) return 'replay'
    return gpus.find((gpu) => gpu.info.provenance !== 'live')?.info.provenance ?? 'live'
  }

  get lastAt(): number {
    return this.#lastAt
  }
}

function ratio(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : used / total
}
