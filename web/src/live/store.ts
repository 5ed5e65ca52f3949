/** What the agent has said, as signals: what `Known` makes of it, for the pages to read. Written by the connection alone. */
import { batch, computed, type ReadonlySignal, signal } from '@preact/signals'
import type { AlertView } from '../../../src/core/alert-contract.ts'
import type { StreamEvent } from '../../../src/core/kinds.ts'
import type { AlertsAnswer } from '../../../src/core/known/alerts.ts'
import { Known } from '../../../src/core/known/known.ts'
import type { Picture } from '../../../src/core/known/picture.ts'
import type { KnownRun } from '../../../src/core/known/runs.ts'
import type { Finding, GpuEvent, HostSample, Run, SourceHealth, TrainingStep } from '../../../src/core/model.ts'
import type { PlaybackState } from '../../../src/core/playback.ts'
import { agentClock, agentNow, now } from './agent-clock.ts'
import { GpuCell, type Moment } from './gpu-cell.ts'

export type LinkState = 'connecting' | 'live' | 'lost' | 'paused'

const known = new Known()

export const link = signal<{ readonly state: LinkState; readonly since: number }>({ state: 'connecting', since: agentNow() })
export const hostname = signal('')
export const version = signal('')
export const health = signal<readonly SourceHealth[]>(known.health)
export const gpus = signal<readonly GpuCell[]>([])
/** What detectors say now, worst first. */
export const findings = signal<readonly Finding[]>(known.findings.list)
/** What people are notified of; null: nobody alerts, or it is not known yet. */
export const alerts = signal<readonly AlertView[] | null>(null)
export const runs = signal<ReadonlyMap<string, Run>>(known.runs.announced)
/** The latest step of each run's lowest rank. */
export const latestSteps = signal<ReadonlyMap<string, TrainingStep>>(known.runs.latest)
export const events = signal<readonly GpuEvent[]>(known.events)
/** The moment of a recording that was played last; null while none is played. */
export const playedAt = signal<number | null>(null)
/** How the recording is played; null while none is. */
export const playback = signal<PlaybackState | null>(null)
/** Grows when the page reconnects after a pause: charts ask for what they missed. */
export const epoch = signal(0)

export const isSimulated = signal(false)
/** A recording of simulated GPUs is both. */
export const isReplay = signal(false)
export const host = signal<HostSample | null>(null)

const moment: ReadonlySignal<Moment> = computed(() => ({ now: now.value, isLinked: isHeard(link.value.state), health: health.value }))
export const isHostLive: ReadonlySignal<boolean> = computed(
  // A recording is shown as it was at its moment: nothing of it grows old.
  () => host.value !== null && ((isReplay.value && moment.value.isLinked) || known.host(moment.value.now)?.live === true),
)

/** Called with every event, after the signals were set; charts add points here without drawing the page. */
const listeners = new Set<(event: StreamEvent) => void>()

export function onEvent(listener: (event: StreamEvent) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function setLink(state: LinkState): void {
  if (link.peek().state === state) return
  known.isLinked = isHeard(state)
  link.value = { state, since: agentNow() }
}

function isHeard(state: LinkState): boolean {
  return state === 'live' || state === 'connecting'
}

export function gpuCell(name: string): GpuCell | null {
  const cells = gpus.value
  return cells.find((cell) => cell.info.value.label === name) ?? cells.find((cell) => cell.id === name) ?? null
}

/** With their steps. Reading it subscribes. */
export function allRuns(): readonly KnownRun[] {
  return runs.value.size + latestSteps.value.size === 0 ? [] : [...known.runs.values()]
}

export function accept(event: StreamEvent): void {
  if (!known.isPlayback) agentClock.hear(event)
  known.accept(event, agentNow())
  show(event.type === 'tick' || event.type === 'devices')
  for (const listener of listeners) listener(event)
}

/** Whether the recording has gone to another moment: what this page knows is of another time. */
export function isJump({ jumps }: PlaybackState): boolean {
  return known.playback !== null && jumps > known.playback.jumps
}

/** Everything as the agent knows it at this moment. `isOther`: of a recording at another moment, so that nothing stays. */
export function begin(picture: Picture, isOther = false): void {
  batch(() => {
    if (isOther) forget()
    take(picture)
  })
}

function forget(): void {
  const event = { type: 'restart' } as const
  known.accept(event, agentNow())
  gpus.value = []
  for (const listener of listeners) listener(event)
}

function take(picture: Picture): void {
  agentClock.set(picture.at)
  known.begin(picture, agentNow())
  hostname.value = picture.hostname
  now.value = agentNow()
  show(true)
}

export function takeAlerts(answer: AlertsAnswer | null): void {
  known.alerts.answer(answer)
  show(false)
}

/** What has not changed is the same object: its signal stays quiet. */
function show(hasGpus: boolean): void {
  batch(() => {
    if (hasGpus) showGpus()
    health.value = known.health
    findings.value = known.findings.list
    alerts.value = known.alerts.list(known.findings)
    runs.value = known.runs.announced
    latestSteps.value = known.runs.latest
    events.value = known.events
    host.value = known.host(now.peek())?.sample ?? null
    playedAt.value = known.playedAt
    playback.value = known.playback
    isReplay.value = known.isPlayback
    isSimulated.value = known.provenance === 'simulated'
  })
}

function showGpus(): void {
  const views = known.gpus(now.peek())
  const cells = gpus.peek()
  if (views.length !== cells.length || views.some(({ info }, index) => info !== cells[index]?.info.peek())) {
    const before = new Map(cells.map((cell) => [cell.id, cell]))
    gpus.value = views.map(({ info }) => before.get(info.id) ?? new GpuCell(info, known, moment))
  }
  gpus.peek().forEach((cell, index) => {
    const view = views[index]
    if (view) cell.show(view)
  })
}
