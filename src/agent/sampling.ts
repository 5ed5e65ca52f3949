/** Sources, supervised, flowing into a hub: what every command that looks at GPUs stands on. */
import { EXIT, Failure } from '../core/failure.ts'
import { formatDuration } from '../core/format.ts'
import type { Log, SelfUsage } from '../core/kinds.ts'
import type { GpuEvent } from '../core/model.ts'
import type { SourceOptions } from '../core/source-contract.ts'
import { VERSION } from '../core/version.ts'
import { type ClockJump, WallClock } from '../core/wall-clock.ts'
import type { Opening } from '../sampler/source-record.ts'
import { Supervisor } from '../sampler/supervisor.ts'
import { VENDOR_NAMES } from '../sources/vendors.ts'
import type { ConfigValues } from './config.ts'
import { Hub } from './hub.ts'
import { KnownCards } from './known-cards.ts'
import { State } from './state.ts'

export interface SamplingOptions {
  readonly values: ConfigValues
  readonly log: Log
  readonly runId: string
  readonly env?: NodeJS.ProcessEnv
  readonly onEnded?: (source: string) => void
  /** Where it is kept which card is which; null or left out: nowhere. */
  readonly cardsFile?: string | null
  /** Only tests change it: they run from the sources, the sampler from the build. */
  readonly samplerEntry?: URL
}

export interface Opened {
  readonly openings: readonly Opening[]
  /** True when no GPU was found and simulated ones are shown instead. */
  readonly simulatedInstead: boolean
  /** GPUs that were asked for by index and are not there; when none of them is, opening fails. */
  readonly missing: readonly number[]
}

export class Sampling {
  readonly clock: WallClock
  readonly state: State
  readonly hub: Hub
  readonly supervisor: Supervisor
  readonly #options: SamplingOptions
  readonly #startedAt = Date.now()

  constructor(options: SamplingOptions) {
    this.#options = options
    const { values, log } = options
    this.clock = new WallClock((jump) => this.#clockJumped(jump))
    const cards = new KnownCards({ file: options.cardsFile ?? null, log })
    this.supervisor = new Supervisor({
      entry: options.samplerEntry ?? new URL('./sampler-child.js', import.meta.url),
      root: values.root,
      env: options.env ?? process.env,
      intervalMs: values.interval * 1000,
      deadlineMs: values.deadline * 1000,
      openDeadlineMs: values.open_deadline * 1000,
      options: sourceOptions(values),
      backoffMs: { first: values.restart_first * 1000, most: values.restart_most * 1000 },
      now: () => this.clock.now(),
      onDevices: (source, devices) => this.hub.receiveDevices(source, cards.devices(source, devices)),
      onTick: (report) => this.hub.receive({ ...report, samples: cards.samples(report.source, report.samples) }),
      onHealth: (health) => this.hub.receiveHealth(health),
      onEnded: (source) => options.onEnded?.(source),
      onPlayback: (playback) => this.hub.receivePlayback(playback),
      onRestart: (why) => this.hub.restart(why),
      onLog: (level, message, detail) => log[level](detail, message),
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
    return { ...opened, missing: this.#missing(opened.openings) }
  }

  async stop(): Promise<void> {
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

  async #openNamed(): Promise<Omit<Opened, 'missing'>> {
    const wanted = this.#options.values.source
    const names = wanted.startsWith('replay:') ? ['replay'] : wanted.split(',')
    const openings = await Promise.all(names.map((name) => this.supervisor.open(name)))
    const absent = openings.filter((opening) => opening.result === 'absent').map((opening) => opening.source)
    if (absent.length === openings.length)
      throw new Failure(`no ${absent.join(' or ')} GPU was found on this machine`, {
        exitCode: EXIT.noSource,
        hint: 'Run "gpuwarden doctor" to see what was looked for, or use --source demo for simulated GPUs.',
      })
    const failed = openings.find((opening) => opening.result === 'failed')
    if (failed && !isVendor(failed.source))
      throw new Failure(failed.message ?? `${failed.source} could not be opened`, { exitCode: EXIT.noSource })
    if (!names.includes('replay')) await this.supervisor.open('host')
    return { openings, simulatedInstead: false }
  }

  /** Simulated GPUs stand in only where there is none at all; the host is always the real one. */
  async #openAuto(): Promise<Omit<Opened, 'missing'>> {
    const openings = await Promise.all(VENDOR_NAMES.map((name) => this.supervisor.open(name)))
    const simulatedInstead = openings.every((opening) => opening.result === 'absent')
    if (simulatedInstead) openings.push(await this.supervisor.open('demo'))
    await this.supervisor.open('host')
    return { openings, simulatedInstead }
  }

  /** A driver that cannot be talked to yet may still have them, and so may a later part of a recording. */
  #missing(openings: readonly Opening[]): readonly number[] {
    const { devices: wanted, source } = this.#options.values
    if (wanted === null || source.startsWith('replay:') || openings.some((opening) => opening.result === 'failed')) return []
    const there = this.state.indices()
    const missing = wanted.filter((index) => !there.includes(index))
    if (missing.length > 0 && missing.length === wanted.length)
      throw new Failure(`there is no GPU ${missing.join(', ')}; there are: ${there.join(', ') || 'none'}`, { exitCode: EXIT.noSource })
    return missing
  }
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
