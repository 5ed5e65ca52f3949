/** What the tests of this room share: a clock to steer, channels that remember, findings, and an agent with GPUs that exist only here. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { AlertMessage, Channel, Delivery } from '../core/alert-contract.ts'
import type { AgentState, GpuView, Log, Tick } from '../core/kinds.ts'
import { type FindingParts, findingWith, healthWith } from '../core/model.fixture.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuReadings,
  GpuSample,
  HostSample,
  ProcessView,
  Provenance,
  SourceHealth,
} from '../core/model.ts'
import { NO_FACTS, NO_HOST_READINGS, NO_READINGS } from '../core/record.ts'
import { detectors } from '../detectors/index.ts'
import { createAlerts } from './alerts.ts'
import type { Alerts, AlertsOptions } from './alerts-api.ts'
import { type AlertValues, alertSettings } from './settings.ts'

export const NOON = new Date(2025, 6, 30, 12, 0, 0).getTime()
export const SECOND = 1000
export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 24 * HOUR
export const GIB = 2 ** 30

export function settingsWith(values: Partial<AlertValues> = {}): AlertValues {
  const defaults = Object.fromEntries(Object.entries(alertSettings).map(([key, entry]) => [key, entry.default]))
  return { ...(defaults as unknown as AlertValues), ...values }
}

export function finding(fingerprint: string, at: number, parts: FindingParts = {}): Finding {
  const text = { message: `${fingerprint} is wrong`, advice: ['Look at it.'] }
  return findingWith({
    detector: 'intruder',
    at,
    ...text,
    ...parts,
    fingerprint: parts.fingerprint ?? fingerprint,
    subject: { host: 'box', ...parts.subject },
  })
}

/** Remembers what it was given; `answer` decides what becomes of it. */
export class PretendChannel implements Channel {
  readonly name: string
  readonly got: AlertMessage[] = []
  tries = 0
  answer: (message: AlertMessage, signal: AbortSignal) => Delivery | Promise<Delivery> = () => ({ ok: true, answer: '250 taken' })

  constructor(name = 'email') {
    this.name = name
  }

  async deliver(message: AlertMessage, signal: AbortSignal): Promise<Delivery> {
    this.tries++
    const delivery = await this.answer(message, signal)
    if (delivery.ok) this.got.push(structuredClone(message))
    return delivery
  }

  goDown(reason = 'connection refused'): void {
    this.answer = () => ({ ok: false, retry: true, reason })
  }

  goUp(): void {
    this.answer = () => ({ ok: true, answer: '250 taken' })
  }

  /** `gpu0 firing, gpu1 late` of each message. */
  said(): string[] {
    return this.got.map((message) => message.alerts.map((alert) => `${alert.fingerprint} ${alert.status}`).join(', '))
  }
}

export interface RecordedLog extends Log {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[]
}

export function recordedLog(): RecordedLog {
  const lines: { level: string; fields: object; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const log: RecordedLog = { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log }
  return log
}

export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'gpuwarden-alerts-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

export function gpuInfo(index: number, parts: Partial<GpuInfo> = {}): GpuInfo {
  const known = { name: 'Test GPU', memoryTotalBytes: 24 * GIB }
  return { ...NO_FACTS, ...known, id: `GPU-${index}`, index, label: String(index), vendor: 'nvidia', provenance: 'live', ...parts }
}

export function gpuSample(gpu: string, at: number, readings: Partial<GpuReadings>): GpuSample {
  return { kind: 'gpu', at, gpu, state: 'ok', stateReason: null, slowAt: null, processes: [], ...NO_READINGS, ...readings }
}

export function hostSample(at: number, diskFreeRatio: number): HostSample {
  const disk = { diskTotalBytes: 1000 * GIB, diskFreeBytes: diskFreeRatio * 1000 * GIB }
  return { kind: 'host', at, hostname: 'box', ...NO_HOST_READINGS, ...disk, processes: [], processesReason: null }
}

export function tickOf(at: number, gpus: readonly GpuSample[], host: HostSample | null = null, source = 'nvidia'): Tick {
  return { seq: 1, at, source, provenance: 'live', gpus, processes: [], host, events: [] }
}

export function sourceHealth(parts: Partial<SourceHealth> = {}): SourceHealth {
  return healthWith(NOON, parts)
}

export class PretendState implements AgentState {
  readonly hostname = 'box'
  views: GpuView[]
  known: ProcessView[] = []
  sources: SourceHealth[] = []
  active: Finding[] = []
  readonly #now: () => number

  constructor(now: () => number, provenance: Provenance = 'live') {
    this.#now = now
    this.views = [0, 1].map((index) => ({ info: gpuInfo(index, { provenance }), sample: null, ageMs: null, live: true }))
  }

  now(): number {
    return this.#now()
  }
  gpus(): readonly GpuView[] {
    return this.views
  }
  processes(): readonly ProcessView[] {
    return this.known
  }
  host(): null {
    return null
  }
  health(): readonly SourceHealth[] {
    return this.sources
  }
  sinks(): readonly [] {
    return []
  }
  self() {
    return { version: '0', startedAt: 0, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }
  }
  lastXid(): ReadonlyMap<string, GpuEvent> {
    return new Map()
  }
  events(): readonly [] {
    return []
  }
  findings(): readonly Finding[] {
    return this.active
  }
}

export interface World {
  at: number
  readonly alerts: Alerts
  readonly channel: PretendChannel
  readonly state: PretendState
  readonly log: RecordedLog
  /** Lets time pass in steps, doing what is due after each. */
  pass(ms: number, stepMs?: number): Promise<void>
  say(fingerprint: string, parts?: FindingParts): void
  clear(fingerprint: string, parts?: FindingParts): void
}

export interface WorldOptions {
  readonly settings?: Partial<AlertValues>
  readonly dir?: string | null
  readonly at?: number
  readonly channel?: PretendChannel
  readonly provenance?: Provenance
  readonly more?: Partial<AlertsOptions>
}

/** The whole room, with time that passes only when it is told to. */
export function pretendWorld(options: WorldOptions = {}): World {
  const channel = options.channel ?? new PretendChannel()
  const log = recordedLog()
  const time = { at: options.at ?? NOON }
  const now = () => time.at
  const state = new PretendState(now, options.provenance)
  const alerts = createAlerts({
    dir: options.dir ?? null,
    channels: new Map([[channel.name, channel]]),
    settings: settingsWith(options.settings),
    ...{ state, log, now, detectors },
    random: () => 0.5,
    sweepMs: 0,
    ...options.more,
  })
  onTestFinished(() => alerts.close())
  const take = (one: Finding) => alerts.accept({ type: 'finding', finding: one })
  return {
    get at() {
      return time.at
    },
    set at(at: number) {
      time.at = at
    },
    alerts,
    channel,
    state,
    log,
    async pass(ms, stepMs = 10 * SECOND) {
      for (let left = ms; left > 0; left -= stepMs) {
        time.at += Math.min(stepMs, left)
        await alerts.sweep()
      }
    },
    say: (fingerprint, parts) => take(finding(fingerprint, time.at, parts)),
    clear: (fingerprint, parts) => take(finding(fingerprint, time.at, { state: 'resolved', message: `${fingerprint} is over`, ...parts })),
  }
}
