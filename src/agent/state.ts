/** What the agent knows at this moment. Written by the hub alone; everybody else reads it through AgentState. */
import { hostname } from 'node:os'
import type { AgentState, GpuView, SelfUsage, SinkHealth, Tick } from '../core/kinds.ts'
import type { Finding, GpuEvent, GpuInfo, GpuSample, HostSample, ProcessInfo, ProcessView, Reading, SourceHealth } from '../core/model.ts'
import { NO_READINGS } from '../core/record.ts'

const MOST_EVENTS = 256
const MOST_FINDINGS = 1024

interface KnownGpu {
  info: GpuInfo
  readonly source: string
  sample: GpuSample | null
  arrivedAt: number
  /** Of the whole tick: taken apart when somebody asks. */
  processes: readonly ProcessView[]
  /** Still in the driver's list. A card that fell off the bus keeps its row. */
  listed: boolean
}

export interface StateOptions {
  readonly now: () => number
  readonly health: () => readonly SourceHealth[]
  readonly sinks: () => readonly SinkHealth[]
  readonly self: () => SelfUsage
  /** Which GPUs to show, by index; null for all. */
  readonly devices: ReadonlySet<number> | null
}

export class State implements AgentState {
  readonly hostname = hostname()
  readonly #options: StateOptions
  readonly #gpus = new Map<string, KnownGpu>()
  readonly #infos = new Map<number, ProcessInfo>()
  readonly #xids = new Map<string, GpuEvent>()
  readonly #findings = new Map<string, Finding>()
  #events: GpuEvent[] = []
  #host: { source: string; sample: HostSample; arrivedAt: number } | null = null

  constructor(options: StateOptions) {
    this.#options = options
  }

  now(): number {
    return this.#options.now()
  }

  gpus(): readonly GpuView[] {
    const now = this.now()
    const health = new Map(this.health().map((one) => [one.source, one]))
    return this.#shown().map(({ info, source, sample, arrivedAt }) => {
      const ageMs = sample === null ? null : age(now, isPlayedBack(info, health.get(source)) ? arrivedAt : sample.at)
      return { info, sample, ageMs, live: isLive(health.get(source), ageMs) }
    })
  }

  processes(): readonly ProcessView[] {
    return this.#shown().flatMap(({ info, processes }) => processes.filter((process) => process.gpu === info.id))
  }

  host(): { sample: HostSample; ageMs: number; live: boolean } | null {
    if (!this.#host) return null
    const { source, sample, arrivedAt } = this.#host
    const health = this.health().find((one) => one.source === source)
    const ageMs = age(this.now(), health?.provenance === 'replay' ? arrivedAt : sample.at)
    return { sample, ageMs, live: isLive(health, ageMs) }
  }

  health(): readonly SourceHealth[] {
    return this.#options.health()
  }

  sinks(): readonly SinkHealth[] {
    return this.#options.sinks()
  }

  self(): SelfUsage {
    return this.#options.self()
  }

  lastXid(): ReadonlyMap<string, GpuEvent> {
    return this.#xids
  }

  events(): readonly GpuEvent[] {
    return this.#events
  }

  findings(): readonly Finding[] {
    return [...this.#findings.values()]
  }

  devices(): readonly GpuInfo[] {
    return this.#shown().map((gpu) => gpu.info)
  }

  /** Of every GPU that is known, shown or not. */
  indices(): readonly number[] {
    return [...new Set([...this.#gpus.values()].map((gpu) => gpu.info.index))].sort((a, b) => a - b)
  }

  shows(id: string): boolean {
    const gpu = this.#gpus.get(id)
    return gpu !== undefined && this.#isShown(gpu.info)
  }

  isSimulated(id: string): boolean {
    return this.#gpus.get(id)?.info.provenance === 'simulated'
  }

  /** Adds the sample's processes, each with who it is. */
  join({ at, gpu, processes }: GpuSample, views: ProcessView[]): void {
    if (processes === null) return
    for (const process of processes) {
      const info = this.#infos.get(process.pid) ?? null
      // A process that began after the driver listed this PID is a later user of the number, not the one on the GPU.
      const isOther = info !== null && info.startedAt !== null && info.startedAt > at + 1000
      views.push({ ...process, gpu, info: isOther ? null : info })
    }
  }

  keepTick({ gpus, processes, host, source, events }: Tick): void {
    const arrivedAt = this.now()
    for (const sample of gpus) {
      const gpu = this.#gpus.get(sample.gpu)
      if (!gpu) continue
      gpu.sample = sample
      gpu.arrivedAt = arrivedAt
      gpu.processes = processes
    }
    if (host) this.#host = { source, sample: host, arrivedAt }
    for (const event of events) this.keepEvent(event)
  }

  keepProcesses(infos: readonly ProcessInfo[]): void {
    this.#infos.clear()
    for (const info of infos) this.#infos.set(info.pid, info)
  }

  keepEvent(event: GpuEvent): void {
    if (this.#events.length >= MOST_EVENTS) this.#events = this.#events.slice(-MOST_EVENTS / 2)
    this.#events.push(event)
    if (event.event === 'xid' && event.gpu !== null) this.#xids.set(event.gpu, event)
  }

  keepFinding(finding: Finding): void {
    if (finding.state === 'resolved') this.#findings.delete(finding.fingerprint)
    else if (this.#findings.has(finding.fingerprint) || this.#findings.size < MOST_FINDINGS)
      this.#findings.set(finding.fingerprint, finding)
  }

  /**
   * Takes over a source's list. Indices are given once per identity and kept, across vendors and restarts:
   * a driver renumbers its cards when one is lost, people do not. Returns what happened to whom.
   */
  keepDevices(source: string, devices: readonly GpuInfo[]): GpuEvent[] {
    const events: GpuEvent[] = []
    const listed = new Set(devices.map((device) => device.id))
    for (const [id, gpu] of this.#gpus) {
      if (gpu.source !== source || listed.has(id)) continue
      if (gpu.info.mig !== null) {
        this.#gpus.delete(id)
        continue
      }
      if (!gpu.listed) continue
      gpu.listed = false
      gpu.sample = lostSample(gpu.info, this.now())
      gpu.arrivedAt = this.now()
      gpu.processes = []
      events.push(happened(this.now(), id, 'lost', `GPU ${gpu.info.label} is no longer listed by the driver`))
    }
    for (const device of devices) {
      const known = this.#gpus.get(device.id)
      if (known) {
        if (!known.listed)
          events.push(happened(this.now(), device.id, 'recovered', `GPU ${known.info.label} is listed by the driver again`))
        known.info = renumber(device, known.info.index)
        known.listed = true
      } else {
        const info = renumber(device, this.#freeIndex(device))
        this.#gpus.set(device.id, { info, source, sample: null, arrivedAt: 0, processes: [], listed: true })
      }
    }
    return events
  }

  /** Rows of cards that the driver no longer lists: they are said to be lost in every tick, not once. */
  addUnlisted(source: string, at: number, samples: GpuSample[]): void {
    for (const gpu of this.#gpus.values()) if (!gpu.listed && gpu.source === source) samples.push(lostSample(gpu.info, at))
  }

  #freeIndex(device: GpuInfo): number {
    const parentId = device.mig?.parentId
    const parent = parentId === undefined ? undefined : this.#gpus.get(parentId)
    if (parent) return parent.info.index
    const taken = new Set([...this.#gpus.values()].filter((gpu) => gpu.info.mig === null).map((gpu) => gpu.info.index))
    let index = device.index
    while (taken.has(index)) index++
    return index
  }

  #isShown(info: GpuInfo): boolean {
    return this.#options.devices === null || this.#options.devices.has(info.index)
  }

  #shown(): KnownGpu[] {
    return [...this.#gpus.values()]
      .filter((gpu) => this.#isShown(gpu.info))
      .sort((a, b) => a.info.index - b.info.index || compareMig(a.info, b.info))
  }
}

function compareMig(a: GpuInfo, b: GpuInfo): number {
  return (a.mig?.gpuInstanceId ?? -1) - (b.mig?.gpuInstanceId ?? -1)
}

function renumber(device: GpuInfo, index: number): GpuInfo {
  if (device.index === index) return device
  return { ...device, index, label: device.mig ? `${index}:${device.mig.gpuInstanceId}` : String(index) }
}

function age(now: number, at: number): number {
  return Math.max(0, now - at)
}

/** A recording of simulated GPUs is played back as well. */
function isPlayedBack(info: GpuInfo, health: SourceHealth | undefined): boolean {
  return info.provenance === 'replay' || health?.provenance === 'replay'
}

/** Old enough to be doubted: two intervals and a deadline without a new sample, or a source that is known to be in trouble. */
function isLive(health: SourceHealth | undefined, ageMs: Reading): boolean {
  if (!health || ageMs === null) return false
  return health.state === 'ok' && ageMs <= 2 * health.intervalMs + health.deadlineMs
}

function lostSample(info: GpuInfo, at: number): GpuSample {
  const stateReason = 'no longer listed by the driver'
  return { kind: 'gpu', at, gpu: info.id, state: 'lost', stateReason, slowAt: null, processes: null, ...NO_READINGS }
}

function happened(at: number, gpu: string, event: 'lost' | 'recovered', message: string): GpuEvent {
  return { kind: 'event', at, gpu, event, code: null, message, origin: 'sampler' }
}
