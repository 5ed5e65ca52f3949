/** What the agent knows now, written by the hub alone: which card is which and whose a process is; the rest is `Known`. */
import { hostname } from 'node:os'
import { migLabel } from '../core/gpu-words.ts'
import type { AgentState, GpuView, HostView, HubEvent, SelfUsage, SinkHealth } from '../core/kinds.ts'
import { compareGpus, Known } from '../core/known/known.ts'
import type { Finding, GpuEvent, GpuInfo, GpuSample, ProcessInfo, ProcessView, SourceHealth } from '../core/model.ts'
import { NO_READINGS } from '../core/record.ts'

interface Card {
  info: GpuInfo
  readonly source: string
  /** Still in the driver's list. A card that fell off the bus keeps its row. */
  listed: boolean
  /** Shown until the driver lists the real one: a card without a driver, or a simulated one. Its row goes with it. */
  standsIn: boolean
}

export interface StateOptions {
  readonly now: () => number
  readonly health: () => readonly SourceHealth[]
  readonly sinks: () => readonly SinkHealth[]
  readonly self: () => SelfUsage
  readonly devices: ReadonlySet<number> | null
}

export class State implements AgentState {
  readonly hostname = hostname()
  readonly #options: StateOptions
  readonly #known = new Known()
  readonly #cards = new Map<string, Card>()
  /** By PID; simulated processes apart from real ones. */
  readonly #infos = { real: new Map<number, ProcessInfo>(), simulated: new Map<number, ProcessInfo>() }
  readonly #xids = new Map<string, GpuEvent>()

  constructor(options: StateOptions) {
    this.#options = options
  }

  now(): number {
    return this.#options.now()
  }

  gpus(): readonly GpuView[] {
    this.#known.health = this.health()
    return this.#known.gpus(this.now())
  }

  processes(): readonly ProcessView[] {
    return this.#known.processes()
  }

  /** Label of the GPU that a process uses; null: none, or unknown. */
  gpuOf(pid: number): string | null {
    const gpu = this.processes().find((process) => process.pid === pid)?.gpu
    return gpu === undefined ? null : (this.gpus().find(({ info }) => info.id === gpu)?.info.label ?? null)
  }

  host(): HostView | null {
    this.#known.health = this.health()
    return this.#known.host(this.now())
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
    return this.#known.events
  }

  findings(): readonly Finding[] {
    return this.#known.findings.list
  }

  devices(): readonly GpuInfo[] {
    return [...this.#cards.values()]
      .map(({ info }) => info)
      .filter((info) => this.#isShown(info))
      .sort(compareGpus)
  }

  /** Of every GPU that is known, shown or not. */
  indices(): readonly number[] {
    return [...new Set([...this.#cards.values()].map(({ info }) => info.index))].sort((a, b) => a - b)
  }

  shows(id: string): boolean {
    const card = this.#cards.get(id)
    return card !== undefined && this.#isShown(card.info)
  }

  isSimulated(id: string): boolean {
    return this.#cards.get(id)?.info.provenance === 'simulated'
  }

  clockSet(byMs: number): void {
    this.#known.clockSet(byMs)
  }

  /** Before the sinks see it, so that they find it here. Runs and steps are the training room's to keep. */
  accept(event: HubEvent): void {
    if (event.type === 'run' || event.type === 'steps') return
    this.#known.accept(event, this.now())
    if (event.type === 'restart') for (const known of [this.#cards, this.#infos.real, this.#infos.simulated, this.#xids]) known.clear()
    if (event.type !== 'tick') return
    for (const one of event.tick.events) if (one.event === 'xid' && one.gpu !== null) this.#xids.set(one.gpu, one)
  }

  /** Adds the sample's processes, each with who it is. */
  join({ at, gpu, processes }: GpuSample, views: ProcessView[], isSimulation: boolean): void {
    if (processes === null) return
    const infos = isSimulation ? this.#infos.simulated : this.#infos.real
    for (const process of processes) {
      const info = infos.get(process.pid) ?? null
      // A process that began after the driver listed this PID is a later user of the number, not the one on the GPU.
      const isOther = info !== null && info.startedAt !== null && info.startedAt > at + 1000
      views.push({ ...process, gpu, info: isOther ? null : info })
    }
  }

  keepProcesses(processes: readonly ProcessInfo[], isSimulation: boolean): void {
    const infos = isSimulation ? this.#infos.simulated : this.#infos.real
    infos.clear()
    for (const info of processes) infos.set(info.pid, info)
  }

  /** Takes over a source's list. Indices are kept per identity: drivers renumber cards when one is lost, people do not. */
  keepDevices(source: string, own: readonly GpuInfo[], standIns: readonly GpuInfo[] = []): GpuEvent[] {
    const events: GpuEvent[] = []
    const devices = [...own, ...standIns]
    const listed = new Set(devices.map((device) => device.id))
    for (const [id, card] of this.#cards) {
      if (card.source !== source || listed.has(id)) continue
      if (card.info.mig !== null || card.standsIn) {
        this.#cards.delete(id)
        continue
      }
      if (!card.listed) continue
      card.listed = false
      events.push(happened(this.now(), id, 'lost', `GPU ${card.info.label} is no longer listed by the driver`))
    }
    for (const device of devices) {
      const standsIn = standIns.includes(device)
      const card = this.#cards.get(device.id)
      if (card) {
        if (!card.listed) events.push(happened(this.now(), device.id, 'recovered', `GPU ${card.info.label} is listed by the driver again`))
        card.info = renumber(device, card.info.index)
        card.listed = true
        card.standsIn = standsIn
      } else this.#cards.set(device.id, { info: renumber(device, this.#freeIndex(device)), source, listed: true, standsIn })
    }
    return events
  }

  /** Rows of cards that the driver no longer lists: they are said to be lost in every tick, not once. */
  addUnlisted(source: string, at: number, samples: GpuSample[]): void {
    for (const card of this.#cards.values())
      if (!card.listed && card.source === source && this.#isShown(card.info)) samples.push(lostSample(card.info, at))
  }

  #freeIndex(device: GpuInfo): number {
    const parentId = device.mig?.parentId
    const parent = parentId === undefined ? undefined : this.#cards.get(parentId)
    if (parent) return parent.info.index
    const taken = new Set([...this.#cards.values()].filter(({ info }) => info.mig === null).map(({ info }) => info.index))
    let index = device.index
    while (taken.has(index)) index++
    return index
  }

  #isShown(info: GpuInfo): boolean {
    return this.#options.devices === null || this.#options.devices.has(info.index)
  }
}

function renumber(device: GpuInfo, index: number): GpuInfo {
  if (device.index === index) return device
  return { ...device, index, label: device.mig ? migLabel(index, device.mig) : String(index) }
}

function lostSample(info: GpuInfo, at: number): GpuSample {
  const stateReason = 'no longer listed by the driver'
  return { kind: 'gpu', at, gpu: info.id, state: 'lost', stateReason, slowAt: null, processes: null, ...NO_READINGS }
}

function happened(at: number, gpu: string, event: 'lost' | 'recovered', message: string): GpuEvent {
  return { kind: 'event', at, gpu, event, code: null, message, origin: 'sampler' }
}
