/** An agent that never was, for the tests of the server: made-up GPUs behind the real contracts. */
import { get, type IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { AlertNews, AlertsEvent, AlertView } from '../core/alert-contract.ts'
import type { AgentState, History, HistoryQuery, HubEvent, Log, Tick } from '../core/kinds.ts'
import { alertWith, cardWith, findingWith, healthWith } from '../core/model.fixture.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuSample,
  HostSample,
  ProcessInfo,
  ProcessView,
  SourceHealth,
  TrainingStep,
} from '../core/model.ts'
import { NO_FIGURES, NO_HOST_READINGS, NO_READINGS } from '../core/record.ts'
import { route } from '../core/route.ts'
import type { MetricsText } from './api-routes.ts'
import { createServer, type GpuwardenServer, type ServerOptions } from './server.ts'
import { type ServerSettings, serverSettings } from './settings.ts'

export const NOW = 1_760_000_000_000
export const TOKEN = 'a-token-nobody-guesses'
export const write = route({
  method: 'POST',
  path: '/api/v1/write',
  summary: 'Changes something',
  body: z.unknown(),
  answer: z.literal('done'),
  handler: () => 'done',
})

export function gpuInfo(index: number): GpuInfo {
  return cardWith(index, {
    id: `GPU-0000-${index}`,
    name: 'NVIDIA H200',
    pciBusId: `00000000:${(index + 16).toString(16).toUpperCase()}:00.0`,
    driverVersion: '570.1',
    cudaVersion: '12.8',
    libraryVersion: '12.570.1',
    vbiosVersion: '96.00.A5.00.03',
    memoryTotalBytes: 150_754_820_096,
    unavailable: { fanRatio: 'no fan' },
  })
}

/** Every reading has a value, so that a tick is as large as they get. */
export function gpuSample(index: number, at = NOW): GpuSample {
  const readings = Object.fromEntries(
    Object.keys(NO_READINGS).map((field, place) => [field, at % 1000 === 0 ? place * 1_234_567.5 : place + 0.25]),
  )
  return {
    ...NO_READINGS,
    ...readings,
    kind: 'gpu',
    at,
    gpu: `GPU-0000-${index}`,
    state: 'ok',
    stateReason: null,
    slowAt: at,
    fanRatio: null,
    processes: [
      { pid: 1000 + index, type: 'compute', memoryUsedBytes: 7e10, smRatio: 0.9, memoryRatio: 0.4, encoderRatio: null, decoderRatio: null },
    ],
  }
}

export function processInfo(pid: number): ProcessInfo {
  return {
    pid,
    parentPid: 1,
    startedAt: NOW - 60_000,
    user: 'ada',
    uid: 1000,
    name: 'python',
    executable: '/usr/bin/python3',
    command: ['python', 'train.py', '--batch-size', '32'],
    state: 'R',
    cpuRatio: 1.02,
    residentBytes: 8e9,
    container: null,
    pod: null,
    slurmJob: '4711',
  }
}

export function processView(index: number): ProcessView {
  const [process] = gpuSample(index).processes ?? []
  if (!process) throw new Error('the pretended sample has a process')
  return { ...process, gpu: `GPU-0000-${index}`, info: processInfo(process.pid) }
}

export function hostSample(at = NOW): HostSample {
  return {
    kind: 'host',
    at,
    hostname: 'pretend',
    ...NO_HOST_READINGS,
    cpuRatio: 0.25,
    cpuCount: 64,
    load1: 3,
    load5: 2,
    load15: 1,
    memoryTotalBytes: 1e12,
    memoryUsedBytes: 2e11,
    memoryAvailableBytes: 8e11,
    swapTotalBytes: 0,
    swapUsedBytes: 0,
    diskTotalBytes: 4e12,
    diskFreeBytes: 1e12,
    processes: [processInfo(1000)],
    processesReason: null,
  }
}

export function indices(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

export function tick(seq: number, gpus = 2): Tick {
  const at = NOW + seq
  return {
    seq,
    at,
    source: 'nvidia',
    provenance: 'live',
    gpus: indices(gpus).map((index) => gpuSample(index, at)),
    processes: indices(gpus).map(processView),
    host: null,
    events: [],
  }
}

export function tickEvent(seq: number, gpus = 2): HubEvent {
  return { type: 'tick', tick: tick(seq, gpus) }
}

export function xid(gpu: string | null): GpuEvent {
  return { kind: 'event', at: NOW, gpu, event: 'xid', code: 79, message: 'GPU has fallen off the bus', origin: 'kmsg' }
}

export function sourceHealth(overrides: Partial<SourceHealth> = {}): SourceHealth {
  return healthWith(NOW - 500, {
    since: NOW - 10_000,
    samples: 10,
    pid: 4242,
    cpuSeconds: 0.1,
    residentBytes: 3e7,
    readMs: 0.4,
    ...overrides,
  })
}

export function finding(gpu: string | null): Finding {
  return findingWith({
    fingerprint: `oom/${gpu}`,
    subject: { host: 'pretend', gpu, gpuIndex: 0, pid: 1000, user: 'ada' },
    at: NOW,
    since: NOW - 5000,
    message: 'GPU 0 runs out of memory in 4 minutes',
    evidence: { slopeBytesPerSecond: 1e8, loss: Number.NaN, hint: 'leak', sure: true, none: null },
    confidence: 0.8,
    advice: ['Lower the batch size.'],
    predictedAt: NOW + 240_000,
    predictedEarliestAt: NOW + 200_000,
    riskLevel: 'high',
  })
}

export function alertView(gpu: string | null): AlertView {
  return alertWith({ ...finding(gpu), evidence: {} }, { gpuLabel: '0' })
}

export function alertsEvent(at: number, gpus: readonly (string | null)[] = ['GPU-0000-0']): AlertsEvent {
  return { type: 'alerts', at, alerts: gpus.map(alertView), gone: [], hasMore: false, silencesChanged: false }
}

/** Says what it is told to, to who follows at that moment. */
export class PretendNews implements AlertNews {
  readonly listeners = new Set<(event: AlertsEvent) => void>()

  follow(listener: (event: AlertsEvent) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  say(event: AlertsEvent): void {
    for (const listener of this.listeners) listener(event)
  }
}

export function trainingStep(loss: number): TrainingStep {
  return {
    kind: 'step',
    at: NOW,
    run: 'r1',
    rank: 0,
    step: 7,
    ...NO_FIGURES,
    epoch: 1,
    loss,
    learningRate: 1e-4,
    gradientNorm: Number.POSITIVE_INFINITY,
    stepSeconds: 0.5,
    phaseSeconds: null,
    custom: null,
  }
}

export interface PretendAgent extends AgentState {
  gpuCount: number
  sources: SourceHealth[]
}

export function pretendAgent(gpuCount = 2): PretendAgent {
  const agent: PretendAgent = {
    gpuCount,
    sources: [sourceHealth()],
    hostname: 'pretend',
    now: () => NOW,
    gpus: () => indices(agent.gpuCount).map((index) => ({ info: gpuInfo(index), sample: gpuSample(index), ageMs: 500, live: true })),
    processes: () => indices(agent.gpuCount).map(processView),
    host: () => ({ sample: hostSample(), ageMs: 700, live: true }),
    health: () => agent.sources,
    sinks: () => [{ name: 'store', dropped: 0, reason: null }],
    self: () => ({ version: '9.9.9', startedAt: NOW - 10_000, runId: 'run-1', pid: 99, cpuSeconds: 1.5, residentBytes: 7e7 }),
    lastXid: () => new Map([['GPU-0000-0', xid('GPU-0000-0')]]),
    events: () => [xid('GPU-0000-0')],
    findings: () => [finding('GPU-0000-0')],
  }
  return agent
}

export interface LogLine {
  readonly level: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

export function collectingLog(lines: LogLine[] = [], bindings: object = {}): Log & { readonly lines: LogLine[] } {
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: { ...bindings, ...fields }, message })
  }
  const child = (more: object) => collectingLog(lines, { ...bindings, ...more })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child }
}

export function pretendHistory(): History & { readonly asked: HistoryQuery[] } {
  const asked: HistoryQuery[] = []
  return {
    asked,
    query(query) {
      asked.push(query)
      const { gpu, fields, stepMs } = query
      return { gpu, fields, stepMs: stepMs ?? 0, data: [[NOW - 1000, NOW], ...fields.map(() => [1, null])], min: null, max: null }
    },
  }
}

export const pretendMetrics: MetricsText = {
  render: (format) => `gpuwarden_up 1 # ${format}\n`,
  contentType: (format) =>
    format === 'openmetrics' ? 'application/openmetrics-text; version=1.0.0; charset=utf-8' : 'text/plain; version=0.0.4; charset=utf-8',
}

export function settingsWith(overrides: Partial<ServerSettings> = {}): ServerSettings {
  const defaults = Object.fromEntries(
    Object.entries(serverSettings).map(([key, entry]) => [key, entry.default]),
  ) as unknown as ServerSettings
  return { ...defaults, 'server.port': 0, ...overrides }
}

export interface Running {
  readonly server: GpuwardenServer
  readonly agent: PretendAgent
  readonly history: ReturnType<typeof pretendHistory>
  readonly log: ReturnType<typeof collectingLog>
  readonly url: string
  readonly port: number
}

export async function startServer(overrides: Partial<ServerOptions> = {}, settings: Partial<ServerSettings> = {}): Promise<Running> {
  const agent = pretendAgent()
  const history = pretendHistory()
  const log = collectingLog()
  const server = createServer({
    state: agent,
    history,
    metrics: pretendMetrics,
    log,
    version: '9.9.9',
    settings: settingsWith(settings),
    ...overrides,
  })
  const { url, port } = await server.listen()
  return { server, agent, history, log, url, port }
}

export interface StreamEvent {
  readonly id: string | null
  readonly event: string
  readonly data: { readonly type: string } & Readonly<Record<string, unknown>>
}

/** A client of the stream that reads, with waiting for what is expected. */
export interface StreamClient {
  readonly events: StreamEvent[]
  readonly comments: number
  readonly ended: boolean
  readonly response: IncomingMessage
  until(condition: () => boolean): Promise<void>
  close(): void
}

export function openStream(url: string, headers: Record<string, string> = {}): Promise<StreamClient> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      const events: StreamEvent[] = []
      const waiting = new Set<() => void>()
      const state = { comments: 0, ended: false }
      let rest = ''
      const notify = () => {
        for (const check of [...waiting]) check()
      }
      const end = () => {
        state.ended = true
        notify()
      }
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        const blocks = (rest + chunk).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) {
          if (block.startsWith(':')) state.comments++
          else events.push(parseEvent(block))
        }
        notify()
      })
      response.on('close', end)
      response.on('error', end)
      resolve({
        events,
        response,
        get comments() {
          return state.comments
        },
        get ended() {
          return state.ended
        },
        until: (condition) =>
          new Promise<void>((done) => {
            const check = () => {
              if (!condition()) return
              waiting.delete(check)
              done()
            }
            waiting.add(check)
            check()
          }),
        close: () => request.destroy(),
      })
    })
    request.on('error', reject)
  })
}

function parseEvent(block: string): StreamEvent {
  const fields = new Map(block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
  return { id: fields.get('id') ?? null, event: fields.get('event') ?? '', data: JSON.parse(fields.get('data') ?? 'null') }
}
