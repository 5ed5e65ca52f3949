/** What happened to a GPU, and what is expected to: families whose series come and go. */
import type { AgentState } from '../core/kinds.ts'
import type { GpuEvent, GpuInfo } from '../core/model.ts'
import { Labels, NO_LABELS, nativeLabels, provenanceLabels } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'

export interface EventContext {
  readonly state: AgentState
  readonly gpus: readonly GpuSubject[]
}

function infoOf(gpus: readonly GpuSubject[], id: string | null): GpuInfo | undefined {
  return gpus.find((gpu) => gpu.info.id === id)?.info
}

type Figures = Map<string, { readonly labels: Labels; readonly value: number }>

/** The latest time of each XID on each GPU, in seconds. */
function xidTimes({ state, gpus }: EventContext): Figures {
  const times: Figures = new Map()
  const take = (event: GpuEvent) => {
    if (event.event !== 'xid' || event.code === null) return
    const info = infoOf(gpus, event.gpu)
    const gpu = info === undefined ? Labels.of({ gpu: '', uuid: event.gpu ?? '' }) : nativeLabels(info)
    const labels = gpu.and(Labels.of({ xid: event.code }))
    times.set(labels.text, { labels, value: Math.max(times.get(labels.text)?.value ?? 0, event.at / 1000) })
  }
  for (const event of state.events()) take(event)
  for (const event of state.lastXid().values()) take(event)
  return times
}

/** Seconds until memory runs out; the soonest where several findings speak of the same GPU and run. */
function predictedOoms({ state, gpus }: EventContext): Figures {
  const soonest: Figures = new Map()
  for (const { detector, state: findingState, predictedAt, subject } of state.findings()) {
    if (detector !== 'oom' || findingState !== 'active' || predictedAt === null) continue
    const gpu = gpus.find((one) => one.info.id === subject.gpu)
    if (gpu !== undefined && !gpu.current) continue
    const own = Labels.of({ gpu: gpu?.info.label ?? null, uuid: gpu?.info.id ?? subject.gpu, run: subject.run, rank: subject.rank })
    const labels = own.and(gpu === undefined ? NO_LABELS : provenanceLabels(gpu.info.provenance))
    const left = Math.max(0, predictedAt - state.now()) / 1000
    soonest.set(labels.text, { labels, value: Math.min(soonest.get(labels.text)?.value ?? Number.POSITIVE_INFINITY, left) })
  }
  return soonest
}

export const EVENT_METRICS: readonly Metric<EventContext>[] = [
  metric(
    'gauge',
    'gpu_xid_last_timestamp_seconds',
    'seconds',
    'When this XID last happened on this GPU, in Unix time.',
    ['gpu', 'uuid', 'name', 'vendor', 'xid'],
    (context, emit) => {
      for (const { labels, value } of xidTimes(context).values()) emit(labels, value)
    },
  ),
  metric(
    'gauge',
    'gpu_predicted_oom_seconds',
    'seconds',
    'Time until memory is expected to run out; absent when that is not expected.',
    ['gpu', 'uuid', 'run', 'rank'],
    (context, emit) => {
      for (const { labels, value } of predictedOoms(context).values()) emit(labels, value)
    },
  ),
]
