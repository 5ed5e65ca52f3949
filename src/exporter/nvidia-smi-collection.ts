/** What that exporter says about itself and about XIDs, answered from what we know of the GPUs and sources. */
import type { AgentState } from '../core/kinds.ts'
import type { Reading } from '../core/model.ts'
import { Figures, Labels, NO_LABELS } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'
import { nvidiaSmiLabels } from './nvidia-smi.ts'
import { seconds } from './units.ts'
import type { XidCounts } from './xid-counts.ts'

export interface CollectionContext {
  readonly state: AgentState
  readonly gpus: readonly GpuSubject[]
  readonly xids: XidCounts
}

const collecting = (gpus: readonly GpuSubject[]): boolean => gpus.some(({ view }) => view.live)

function latestSampleAt(gpus: readonly GpuSubject[]): Reading {
  let latest: Reading = null
  for (const { view } of gpus) if (view.sample !== null && view.sample.at > (latest ?? 0)) latest = view.sample.at
  return latest
}

function longestRead(state: AgentState): Reading {
  let longest: Reading = null
  for (const { readMs } of state.health()) if (readMs !== null && readMs > (longest ?? -1)) longest = readMs
  return longest
}

/** null for a GPU that is not in this set. */
function xidLabels(gpus: readonly GpuSubject[], gpu: string | null, code: number): Labels | null {
  const info = gpus.find((one) => one.info.id === gpu)?.info
  return info === undefined ? null : (nvidiaSmiLabels(info, [])?.and(Labels.of({ xid: code })) ?? null)
}

/** The latest time of each XID on each GPU; those of before the start of counting too. */
function xidTimes({ state, gpus, xids }: CollectionContext): Figures {
  const times = new Figures()
  const take = (gpu: string | null, code: Reading, at: number) => {
    const labels = code === null ? null : xidLabels(gpus, gpu, code)
    if (labels !== null) times.add(labels, at / 1000, Math.max)
  }
  for (const { event, gpu, code, at } of [...state.events(), ...state.lastXid().values()]) if (event === 'xid') take(gpu, code, at)
  for (const { gpu, code, lastAt } of xids.all()) take(gpu, code, lastAt)
  return times
}

export const NVIDIA_SMI_COLLECTION: readonly Metric<CollectionContext>[] = [
  metric('gauge', 'nvidia_smi_command_exit_code', '', '0 if an NVIDIA GPU can be read, else 1.', [], ({ gpus }, emit) =>
    emit(NO_LABELS, collecting(gpus) ? 0 : 1),
  ),
  metric('counter', 'nvidia_smi_failed_scrapes_total', '', 'How often a source failed and was restarted.', [], ({ state }, emit) => {
    let restarts = 0
    for (const source of state.health()) restarts += source.restarts
    emit(NO_LABELS, restarts)
  }),
  metric('gauge', 'nvidia_smi_last_collect_success', '', '1 if an NVIDIA GPU can be read, else 0.', [], ({ gpus }, emit) =>
    emit(NO_LABELS, collecting(gpus) ? 1 : 0),
  ),
  metric(
    'gauge',
    'nvidia_smi_last_collect_success_timestamp_seconds',
    'seconds',
    'When an NVIDIA GPU was last read, in Unix time.',
    [],
    ({ gpus }, emit) => emit(NO_LABELS, seconds(latestSampleAt(gpus))),
  ),
  metric(
    'gauge',
    'nvidia_smi_last_collect_duration_seconds',
    'seconds',
    'Duration of the last reading; the longest if there are several sources.',
    [],
    ({ state }, emit) => {
      const longest = longestRead(state)
      emit(NO_LABELS, longest === null ? null : longest / 1000)
    },
  ),
  metric(
    'counter',
    'nvidia_smi_xid_errors_total',
    '',
    'How often this XID happened on this GPU since the agent was started.',
    ['uuid', 'xid'],
    ({ gpus, xids }, emit) => {
      for (const { gpu, code, count } of xids.all()) {
        const labels = xidLabels(gpus, gpu, code)
        if (labels !== null) emit(labels, count)
      }
    },
  ),
  metric(
    'gauge',
    'nvidia_smi_xid_last_timestamp_seconds',
    'seconds',
    'When this XID last happened on this GPU, in Unix time.',
    ['uuid', 'xid'],
    (context, emit) => xidTimes(context).emit(emit),
  ),
]
