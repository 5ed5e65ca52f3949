/** Sources, supervised, flowing into a hub: what every command that looks at GPUs stands on. */
import { EXIT, Failure } from '../core/failure.ts'
import { formatDuration } from '../core/format.ts'
import type { Log, SelfUsage } from '../core/kinds.ts'
import type { GpuEvent, GpuInfo, GpuSample } from '../core/model.ts'
import type { SourceOptions } from '../core/source-contract.ts'
import type { Vendor } from '../core/vendor.ts'
import { VERSION } from '../core/version.ts'
import { type ClockJump, WallClock } from '../core/wall-clock.ts'
import type { Opening } from '../sampler/source-record.ts'
import { Supervisor } from '../sampler/supervisor.ts'
import type { SourceTickReport } from '../sampler/supervisor-options.ts'
import { VENDOR_NAMES, VENDORS } from '../sources/vendors.ts'
import type { ConfigValues } from './config.ts'
import { DriverWatch } from './driver-watch.ts'
import { Hub } from './hub.ts'
import { KnownCards } from './known-cards.ts'
import { mayStandIn } from './stand-in.ts'
import { State } from './state.ts'

const STAND_IN = 'demo'

export interface SamplingOptions {
  readonly values: ConfigValues
  readonly log: Log
  readonly runId: string
  readonly env?: NodeJS.ProcessEnv
  readonly onEnded?: (source: string) => void
  /** Where it is kept which card is which; null or left out: nowhere. */
  readonly cardsFile?: string | null
  /** Somebody looks at a screen of this machine: where it has no GPU at all, simulated ones may be shown. */
  readonly mayStandIn?: boolean
  /** A driver that takes longer to start counts as one that does not respond, until it does; left out: whoever asks waits for it. */
  readonly slowStartMs?: number
  /** Only tests change it: they run from the sources, the sampler from the build. */
  readonly samplerEntry?: URL
}

export interface Opened {
  readonly openings: readonly Opening[]
  /** True when no GPU was found and simulated ones are shown instead. */
  readonly simulatedInstead: boolean
  /** What is worth knowing about the GPUs, for people. */
  readonly notes: readonly string[]
  /** GPUs that were asked for by index and are not there; when none of them is, opening fails. */
  readonly missing: readonly number[]
}

export class Sampling {
  readonly clock: WallClock
  readonly state: State
  readonly hub: Hub
  readonly supervisor: Supervisor
  readonly #options: SamplingOptions
  readonly #cards: KnownCards
  readonly #drivers: DriverWatch
  /** Cards without a driver, by the source that would read them. */
  readonly #rows = new Map<string, readonly GpuInfo[]>()
  readonly #own = new Map<string, readonly GpuInfo[]>()
  readonly #startedAt = Date.now()
  #isStandIn = false

  constructor(options: SamplingOptions) {
    this.#options = options
    const { values, log } = options
    this.clock = new WallClock((jump) => this.#clockJumped(jump))
    this.#cards = new KnownCards({ file: options.cardsFile ?? null, log })
    this.supervisor = new Supervisor({
      entry: options.samplerEntry ?? new URL('./sampler-child.js', import.meta.url),
      root: values.root,
      env: options.env ?? process.env,
      intervalMs: values.interval * 1000,
      deadlineMs: values.deadline * 1000,
      openDeadlineMs: values.open_deadline * 1000,
      slowStartMs: options.slowStartMs,
      options: sourceOptions(values),
      backoffMs: { first: values.restart_first * 1000, most: values.restart_most * 1000 },
      now: () => this.clock.now(),
      onDevices: (source, devices) => this.#listed(source, devices),
      onTick: (report) => this.#receive(report),
      onHealth: (health) => this.hub.receiveHealth(health),
      onEnded: (source) => options.onEnded?.(source),
      onPlayback: (playback) => this.hub.receivePlayback(playback),
      onRestart: (why) => this.hub.restart(why),
      onLog: (level, message, detail) => log[level](detail, message),
    })
    this.#drivers = new DriverWatch({
      root: values.root,
      vendors: watchedVendors(values.source),
      library: values.nvml,
      now: () => this.clock.now(),
      health: () => this.supervisor.health(),
      onSigns: (source) => this.supervisor.lookAgain(source),
      onNewCard: (source) => this.supervisor.reopen(source),
      onRows: (source, rows, samples) => this.#showRows(source, rows, samples),
    })
    this.state = new State({
      now: () => this.clock.now(),
      health: () => this.supervisor.health(),
      sinks: () => this.hub.sinkHealth(),
      self: () => this.self(),
      devices: values.devices === null ? null : new Set(values.devices),
    })
    this.hub = new Hub({ state: this.state, log, onProcesses: (pids) => this.supervisor.watch(pids) })
  }

  /** Ages are counted on; the time before and after is marked in the history. */
  #clockJumped({ from, at }: ClockJump): void {
    this.supervisor.clockSet(at - from)
    this.state.clockSet(at - from)
    const message = `the clock of this machine jumped ${at > from ? 'ahead' : 'back'} by ${formatDuration(Math.abs(at - from))}, from ${new Date(from).toISOString()}: it was set, or the machine slept`
    this.#options.log.warn({ from, at }, `${message}; for an hour no log file is deleted and no run is closed for its age`)
    const code = Math.round((at - from) / 1000)
    const event: GpuEvent = { kind: 'event', at, gpu: null, event: 'clock_jump', code, message, origin: 'agent' }
    // Whoever asked for the time is in the middle of something.
    queueMicrotask(() => this.hub.receive({ source: 'agent', provenance: 'live', at, samples: [event] }))
  }

  /** Opens what the configuration asks for. A vendor that is there but cannot be talked to is retried, and reported here. */
  async open(): Promise<Opened> {
    const opened = this.#options.values.source === 'auto' ? await this.#openAuto() : await this.#openNamed()
    this.#drivers.start()
    return { ...opened, missing: this.#missing(opened.openings), notes: this.notes() }
  }

  notes(): readonly string[] {
    return this.#drivers.notes()
  }

  async stop(): Promise<void> {
    this.#drivers.stop()
    await this.supervisor.stop()
  }

  self(): SelfUsage {
    const { user, system } = process.cpuUsage()
    return {
      version: VERSION,
      startedAt: this.#startedAt,
      runId: this.#options.runId,
      pid: process.pid,
      cpuSeconds: (user + system) / 1e6,
      residentBytes: process.memoryUsage.rss(),
    }
  }

  #listed(source: string, devices: readonly GpuInfo[]): void {
    if (this.#isStandIn && source === STAND_IN) {
      this.hub.receiveDevices(source, [], devices)
      return
    }
    if (this.#isStandIn && devices.length > 0) this.#endStandIn()
    this.#own.set(source, devices)
    this.#drivers.note(source, devices)
    this.#publishDevices(source)
  }

  /** Real GPUs have come. */
  #endStandIn(): void {
    this.#isStandIn = false
    this.supervisor.close(STAND_IN)
    this.hub.receiveDevices(STAND_IN, [])
    this.#options.log.info({}, 'a GPU was found: the simulated ones are gone')
  }

  #showRows(source: string, rows: readonly GpuInfo[], samples: readonly GpuSample[]): void {
    if (this.#isStandIn && rows.length > 0) this.#endStandIn()
    const before = this.#rows.get(source) ?? []
    this.#rows.set(source, rows)
    if (rows.map(({ id }) => id).join() !== before.map(({ id }) => id).join()) this.#publishDevices(source)
    this.#receive({ source, provenance: 'live', at: this.clock.now(), samples })
  }

  #publishDevices(source: string): void {
    const own = this.#own.get(source) ?? []
    const named = this.#cards.devices(source, [...own, ...(this.#rows.get(source) ?? [])])
    this.hub.receiveDevices(source, named.slice(0, own.length), named.slice(own.length))
  }

  #receive(report: SourceTickReport): void {
    this.hub.receive({ ...report, samples: this.#cards.samples(report.source, report.samples) })
  }

  async #openNamed(): Promise<Omit<Opened, 'missing' | 'notes'>> {
    const wanted = this.#options.values.source
    const names = wanted.startsWith('replay:') ? ['replay'] : wanted.split(',')
    const openings = await Promise.all(names.map((name) => this.supervisor.open(name)))
    if (openings.every((opening) => opening.result === 'absent')) throw noGpuFailure(openings)
    const failed = openings.find((opening) => opening.result === 'failed')
    if (failed && !isVendor(failed.source))
      throw new Failure(failed.message ?? `${failed.source} could not be opened`, { exitCode: EXIT.noSource })
    if (!names.includes('replay')) await this.supervisor.open('host')
    return { openings, simulatedInstead: false }
  }

  /** Simulated GPUs stand in only where there is no card at all; the host is always the real one. */
  async #openAuto(): Promise<Omit<Opened, 'missing' | 'notes'>> {
    const openings = await Promise.all(VENDOR_NAMES.map((name) => this.supervisor.open(name)))
    const isEmpty = openings.every((opening) => opening.result === 'absent') && !this.#drivers.hasCards()
    this.#isStandIn = isEmpty && this.#options.mayStandIn === true && mayStandIn(this.#options.values)
    if (this.#isStandIn) openings.push(await this.supervisor.open(STAND_IN))
    await this.supervisor.open('host')
    return { openings, simulatedInstead: this.#isStandIn }
  }

  /** A driver that cannot be talked to yet may still have them, and so may a later part of a recording. */
  #missing(openings: readonly Opening[]): readonly number[] {
    const { devices: wanted, source } = this.#options.values
    if (wanted === null || source.startsWith('replay:') || openings.some((opening) => opening.result === 'failed')) return []
    const there = this.state.indices()
    const missing = wanted.filter((index) => !there.includes(index))
    // Where there is none at all, one may come.
    if (missing.length === wanted.length && there.length > 0)
      throw new Failure(`there is no GPU ${missing.join(', ')}; there are: ${there.join(', ')}`, { exitCode: EXIT.noSource })
    return missing
  }
}

/** For whoever cannot do anything without a GPU. */
export function refuseWithoutGpu({ openings }: Opened): void {
  if (openings.some(({ result }) => result === 'opened')) return
  const faults = openings.flatMap(({ result, message }) => (result === 'failed' && message !== null ? [message] : []))
  if (faults.length === 0) throw noGpuFailure(openings)
  throw new Failure(faults.join('; '), { exitCode: EXIT.noSource, hint: 'Run "gpuwarden doctor" for what to do.' })
}

export function noGpuFailure(openings: readonly Opening[]): Failure {
  return new Failure(`no ${openings.map(({ source }) => source).join(' or ')} GPU was found on this machine`, {
    exitCode: EXIT.noSource,
    hint: 'Run "gpuwarden doctor" to see what was looked for, or use --source demo for simulated GPUs.',
  })
}

/** A recording and a simulation have no drivers. */
function watchedVendors(source: string): readonly Vendor[] {
  const names = source.split(',')
  return source === 'auto' ? VENDORS : VENDORS.filter(({ name }) => names.includes(name))
}

function isVendor(name: string): boolean {
  return VENDOR_NAMES.includes(name)
}

function sourceOptions(values: ConfigValues): SourceOptions {
  return {
    wake: values.wake,
    logDir: values['log.dir'],
    demoScenario: values['demo.scenario'],
    seed: values['demo.seed'],
    speed: values['replay.speed'] === 'max' ? Number.MAX_VALUE : values['replay.speed'],
    slowIntervalMs: values.slow_interval * 1000,
    ...(values['demo.gpus'] === null ? {} : { demoGpus: values['demo.gpus'] }),
    ...(values.nvml === null ? {} : { nvmlPath: values.nvml }),
    ...(values.source.startsWith('replay:') ? { replayPath: values.source.slice('replay:'.length) } : {}),
  }
}
