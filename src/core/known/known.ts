/** What is known now, from the hub's events. The agent, an attached `top` and the web UI each keep one, so all show the same. Time is a parameter. */
import type { GpuView, HostView, StreamEvent, Tick } from '../kinds.ts'
import type { GpuEvent, GpuInfo, GpuSample, HostSample, ProcessView, Provenance, SourceHealth } from '../model.ts'
import type { PlaybackState } from '../playback.ts'
import { ageOf, healthOfGpu, healthOfHost, isLive } from './age.ts'
import { KnownAlerts } from './alerts.ts'
import { KnownFindings } from './findings.ts'
import type { Picture } from './picture.ts'
import { KnownRuns } from './runs.ts'

interface KnownGpu {
  info: GpuInfo
  sample: GpuSample | null
  /** null: unknown yet. */
  source: string | null
  arrivedAt: number
  /** How far the clock was set since then. */
  movedMs: number
  /** Of the whole tick: split on demand. */
  processes: readonly ProcessView[]
}

const MOST_EVENTS = 256
const NO_PROCESSES: readonly ProcessView[] = []

/** By index; MIG instances follow their card. */
export function compareGpus(a: GpuInfo, b: GpuInfo): number {
  return (
    a.index - b.index ||
    (a.mig?.gpuInstanceId ?? -1) - (b.mig?.gpuInstanceId ?? -1) ||
    (a.mig?.computeInstanceId ?? -1) - (b.mig?.computeInstanceId ?? -1)
  )
}

export class Known {
  readonly findings = new KnownFindings()
  readonly alerts = new KnownAlerts()
  readonly runs = new KnownRuns()
  health: readonly SourceHealth[] = []
  /** Of the recording that is played; null: none, or not heard of yet. */
  playback: PlaybackState | null = null
  /** False: the agent is not reachable, so nothing is current. */
  isLinked = true
  #gpus: ReadonlyMap<string, KnownGpu> = new Map()
  #host: { readonly sample: HostSample; readonly source: string | null; readonly arrivedAt: number; readonly movedMs: number } | null = null
  #events: readonly GpuEvent[] = []
  /** Time of the latest event. */
  #toldAt: number | null = null

  /** `now`: the agent's time. */
  accept(event: StreamEvent, now: number): void {
    switch (event.type) {
      case 'tick':
        this.#tick(event.tick, now)
        break
      case 'devices':
        this.#devices(event.devices)
        break
      case 'health':
        this.health = event.health
        break
      case 'finding':
        this.findings.accept(event.finding)
        break
      case 'alerts':
        this.alerts.accept(event)
        break
      case 'run':
        this.runs.acceptRun(event.run)
        break
      case 'playback':
        this.playback = event.playback
        break
      case 'restart':
        this.#restart()
        break
      case 'steps':
        this.runs.acceptSteps(event.steps)
        this.#toldAt = event.steps.at(-1)?.at ?? this.#toldAt
        break
    }
  }

  /** Replaces everything except steps, which a picture does not have. */
  begin({ health, gpus, processes, host, findings, runs, events, alerts }: Picture, now: number): void {
    this.health = health
    this.#devices(gpus.map(({ info }) => info))
    for (const { info, sample, ageMs } of gpus) {
      const gpu = this.#gpus.get(info.id)
      if (gpu) Object.assign(gpu, { sample, processes, arrivedAt: now - (ageMs ?? 0), movedMs: 0 })
    }
    this.#host = host && { sample: host.sample, source: null, arrivedAt: now - host.ageMs, movedMs: 0 }
    this.#events = events
    this.findings.begin(findings)
    this.runs.begin(runs)
    this.alerts.answer(alerts)
    const told = [...gpus.map(({ sample }) => sample?.at ?? 0), host?.sample.at ?? 0]
    this.#toldAt = Math.max(...told) || this.#toldAt
  }

  /** The agent's clock was set: what is known is as old as before. */
  clockSet(byMs: number): void {
    for (const gpu of this.#gpus.values()) {
      gpu.arrivedAt += byMs
      gpu.movedMs += byMs
    }
    const host = this.#host
    if (host) this.#host = { ...host, arrivedAt: host.arrivedAt + byMs, movedMs: host.movedMs + byMs }
  }

  gpus(now: number): readonly GpuView[] {
    return Array.from(this.#gpus.values(), (gpu) => this.#view(gpu, now))
  }

  gpu(id: string, now: number): GpuView | null {
    const gpu = this.#gpus.get(id)
    return gpu ? this.#view(gpu, now) : null
  }

  healthOf(id: string): SourceHealth | null {
    const gpu = this.#gpus.get(id)
    return (gpu && healthOfGpu(gpu.source, gpu.info, this.health)) ?? null
  }

  processesOf(id: string): readonly ProcessView[] {
    return this.#gpus.get(id)?.processes.filter(({ gpu }) => gpu === id) ?? NO_PROCESSES
  }

  processes(): readonly ProcessView[] {
    const all: ProcessView[] = []
    for (const { info, processes } of this.#gpus.values()) for (const one of processes) if (one.gpu === info.id) all.push(one)
    return all
  }

  host(now: number): HostView | null {
    if (!this.#host) return null
    const { source, sample, arrivedAt, movedMs } = this.#host
    const health = healthOfHost(source, this.health)
    const ageMs = ageOf(sample.at + movedMs, arrivedAt, health?.provenance === 'replay', now)
    return { sample, ageMs, live: this.isLinked && isLive(health, ageMs) }
  }

  /** Oldest first; bounded. The same array until there is another. */
  get events(): readonly GpuEvent[] {
    return this.#events
  }

  get isPlayback(): boolean {
    if (this.health.some(({ provenance }) => provenance === 'replay')) return true
    for (const { info } of this.#gpus.values()) if (info.provenance === 'replay') return true
    return false
  }

  /** One simulated card makes all of it simulated. */
  get provenance(): Provenance {
    for (const { info } of this.#gpus.values()) if (info.provenance === 'simulated') return 'simulated'
    return this.isPlayback ? 'replay' : 'live'
  }

  /** Current moment of a recording; null: none is played. */
  get playedAt(): number | null {
    return this.isPlayback ? this.#toldAt : null
  }

  /** The time of the readings. */
  present(now: number): number {
    return this.playedAt ?? now
  }

  #tick({ at, source, gpus, processes, host, events }: Tick, now: number): void {
    for (const sample of gpus) {
      const gpu = this.#gpus.get(sample.gpu)
      if (!gpu) continue
      gpu.sample = sample
      gpu.source = source
      gpu.arrivedAt = now
      gpu.movedMs = 0
      gpu.processes = processes
    }
    if (host) this.#host = { sample: host, source, arrivedAt: now, movedMs: 0 }
    if (events.length > 0) {
      const news = events.filter((event) => !this.#events.some((known) => isSame(known, event)))
      this.#events = [...this.#events, ...news].slice(-MOST_EVENTS)
    }
    this.#toldAt = at
  }

  #restart(): void {
    this.#gpus = new Map()
    this.#host = null
    this.#events = []
    this.#toldAt = null
    this.findings.begin([])
    this.findings.forgetResolved()
    this.runs.clear()
    this.alerts.clear()
  }

  #devices(devices: readonly GpuInfo[]): void {
    const gpus = new Map<string, KnownGpu>()
    for (const info of devices.toSorted(compareGpus)) {
      const gpu = this.#gpus.get(info.id) ?? { info, sample: null, source: null, arrivedAt: 0, movedMs: 0, processes: NO_PROCESSES }
      gpu.info = info
      gpus.set(info.id, gpu)
    }
    this.#gpus = gpus
  }

  #view({ info, sample, source, arrivedAt, movedMs }: KnownGpu, now: number): GpuView {
    const health = healthOfGpu(source, info, this.health)
    const isPlayedBack = info.provenance === 'replay' || health?.provenance === 'replay'
    const ageMs = sample === null ? null : ageOf(sample.at + movedMs, arrivedAt, isPlayedBack, now)
    return { info, sample, ageMs, live: this.isLinked && isLive(health, ageMs) }
  }
}

/** A picture may hold events that also wait in the stream. */
function isSame(a: GpuEvent, b: GpuEvent): boolean {
  return a.at === b.at && a.gpu === b.gpu && a.event === b.event && a.code === b.code && a.message === b.message
}
