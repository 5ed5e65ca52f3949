/** What the agent has said, as signals: written by the connection alone, read by the pages. */
import { batch, computed, type ReadonlySignal, signal } from '@preact/signals'
import { numberOf } from '../../../src/core/json-text.ts'
import type { GpuView, StreamEvent, Tick } from '../../../src/core/kinds.ts'
import type { Finding, GpuEvent, GpuInfo, HostSample, ProcessView, Run, SourceHealth, TrainingStep } from '../../../src/core/model.ts'
import { agentNow } from './agent-clock.ts'
import { GpuCell } from './gpu-cell.ts'

export type LinkState = 'connecting' | 'live' | 'lost' | 'paused'

export const link = signal<{ readonly state: LinkState; readonly since: number }>({ state: 'connecting', since: agentNow() })
export const hostname = signal('')
export const version = signal('')
export const health = signal<readonly SourceHealth[]>([])
export const host = signal<HostSample | null>(null)
export const gpus = signal<readonly GpuCell[]>([])
export const findings = signal<readonly Finding[]>([])
export const runs = signal<ReadonlyMap<string, Run>>(new Map())
/** The latest step of each run's lowest rank. */
export const latestSteps = signal<ReadonlyMap<string, TrainingStep>>(new Map())
export const events = signal<readonly GpuEvent[]>([])
/** Grows when the page begins anew after a pause: charts ask for what they missed. */
export const epoch = signal(0)

export const isLinked: ReadonlySignal<boolean> = computed(() => link.value.state === 'live' || link.value.state === 'connecting')
export const isSimulated: ReadonlySignal<boolean> = computed(() => gpus.value.some((cell) => cell.info.value.provenance === 'simulated'))
/** A recording of simulated GPUs is both. */
export const isReplay: ReadonlySignal<boolean> = computed(
  () => health.value.some((one) => one.provenance === 'replay') || gpus.value.some((cell) => cell.info.value.provenance === 'replay'),
)

const SEVERITY_ORDER = { critical: 0, warning: 1, info: 2 } as const
const MOST_EVENTS = 500

/** Called with every event, after the signals were set; charts add points here without drawing the page. */
const listeners = new Set<(event: StreamEvent) => void>()

export function onEvent(listener: (event: StreamEvent) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function gpuCell(name: string): GpuCell | null {
  const cells = gpus.value
  return cells.find((cell) => cell.info.value.label === name) ?? cells.find((cell) => cell.id === name) ?? null
}

export function accept(event: StreamEvent): void {
  batch(() => {
    if (event.type === 'tick') takeTick(event.tick)
    else if (event.type === 'devices') takeDevices(event.devices)
    else if (event.type === 'health') health.value = event.health
    else if (event.type === 'finding') takeFinding(event.finding)
    else if (event.type === 'run') takeRun(event.run)
    else if (event.type === 'steps') takeSteps(event.steps)
  })
  for (const listener of listeners) listener(event)
}

/** Everything as the agent knows it at this moment. */
export interface Picture {
  readonly gpus: readonly GpuView[]
  readonly processes: readonly ProcessView[]
  readonly host: HostSample | null
  readonly health: readonly SourceHealth[]
  readonly findings: readonly Finding[]
  readonly runs: readonly Run[]
  readonly events: readonly GpuEvent[]
}

export function begin(picture: Picture): void {
  batch(() => {
    takeDevices(picture.gpus.map(({ info }) => info))
    for (const { info, sample, ageMs } of picture.gpus) {
      const own = picture.processes.filter((process) => process.gpu === info.id)
      if (sample) gpus.value.find((cell) => cell.id === info.id)?.take(sample, own, null, ageMs ?? 0)
    }
    host.value = picture.host
    health.value = picture.health
    findings.value = sorted(picture.findings)
    runs.value = new Map(picture.runs.map((run) => [run.id, run]))
    events.value = picture.events
  })
}

function takeDevices(devices: readonly GpuInfo[]): void {
  const known = new Map(gpus.value.map((cell) => [cell.id, cell]))
  gpus.value = devices.map((info) => {
    const cell = known.get(info.id)
    if (!cell) return new GpuCell(info, health, isLinked)
    cell.info.value = info
    return cell
  })
}

function takeTick(tick: Tick): void {
  for (const sample of tick.gpus) {
    const own = tick.processes.filter((process) => process.gpu === sample.gpu)
    gpus.value.find((cell) => cell.id === sample.gpu)?.take(sample, own, tick.source)
  }
  if (tick.host) host.value = tick.host
  if (tick.events.length > 0) events.value = [...events.value, ...tick.events].slice(-MOST_EVENTS)
}

function takeFinding(finding: Finding): void {
  const others = findings.value.filter(({ fingerprint }) => fingerprint !== finding.fingerprint)
  findings.value = finding.state === 'active' ? sorted([...others, finding]) : others
}

function takeRun(run: Run): void {
  runs.value = new Map(runs.value).set(run.id, run)
}

function takeSteps(steps: readonly TrainingStep[]): void {
  const latest = new Map(latestSteps.value)
  for (const given of steps) {
    const step = revived(given)
    const known = latest.get(step.run)
    if (!known || step.rank < known.rank || (step.rank === known.rank && step.at >= known.at)) latest.set(step.run, step)
  }
  latestSteps.value = latest
}

/** Numbers that JSON cannot write came as text. */
export function revived(step: TrainingStep): TrainingStep {
  const { loss, gradientNorm, learningRate, throughputPerSecond, stepSeconds } = step
  return {
    ...step,
    loss: numberOf(loss),
    gradientNorm: numberOf(gradientNorm),
    learningRate: numberOf(learningRate),
    throughputPerSecond: numberOf(throughputPerSecond),
    stepSeconds: numberOf(stepSeconds),
  }
}

function sorted(list: readonly Finding[]): readonly Finding[] {
  return [...list].sort((a, b) => SEVERITY_ORDER[a.severity] - SEVERITY_ORDER[b.severity] || b.since - a.since)
}
