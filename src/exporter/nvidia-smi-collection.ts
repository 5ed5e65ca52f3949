/** What that exporter says about itself and about XIDs, answered from what we know of the GPUs and sources. */
import type { AgentState, GpuView } from '../core/kinds.ts'
import type { Reading } from '../core/model.ts'
import { joinPairs, pairs } from './labels.ts'
import { type Metric, metric } from './metric.ts'
import { nvidiaSmiPairs } from './nvidia-smi.ts'
import { seconds } from './units.ts'
import type { XidCounts } from './xid-counts.ts'

export interface CollectionContext {
  readonly state: AgentState
  readonly xids: XidCounts
}

const theirs = (state: AgentState): readonly GpuView[] => state.gpus().filter(({ info }) => info.vendor === 'nvidia')

const collecting = (state: AgentState): boolean => theirs(state).some(({ live }) => live)

function latestSampleAt(state: AgentState): Reading {
  let latest: Reading = null
  for (const { sample } of theirs(state)) if (sample !== null && sample.at > (latest ?? 0)) latest = sample.at
  return latest
}

function longestRead(state: AgentState): Reading {
  let longest: Reading = null
  for (const { readMs } of state.health()) if (readMs !== null && readMs > (longest ?? -1)) longest = readMs
  return longest
}

/** The pairs of a GPU that is in this set; null for others. */
function xidPairs(state: AgentState, gpu: string | null, code: number): string | null {
  const infos = state.gpus().map(({ info }) => info)
  const info = infos.find(({ id }) => id === gpu)
  const own = info === undefined ? null : nvidiaSmiPairs(info, infos)
  return own === null ? null : joinPairs(own, pairs({ xid: code }))
}

/** The latest time of each XID on each GPU, by its labels; those of before the start of counting too. */
function xidTimes({ state, xids }: CollectionContext): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  const take = (gpu: string | null, code: Reading, at: number) => {
    const own = code === null ? null : xidPairs(state, gpu, code)
    if (own !== null) times.set(own, Math.max(times.get(own) ?? 0, at / 1000))
  }
  for (const { event, gpu, code, at } of [...state.events(), ...state.lastXid().values()]) if (event === 'xid') take(gpu, code, at)
  for (const { gpu, code, lastAt } of xids.all()) take(gpu, code, lastAt)
  return times
}

export const NVIDIA_SMI_COLLECTION: readonly Metric<CollectionContext>[] = [
  metric('gauge', 'nvidia_smi_command_exit_code', '', '0 when an NVIDIA GPU can be read, else 1.', [], ({ state }, emit) =>
    emit('', collecting(state) ? 0 : 1),
  ),
  metric('counter', 'nvidia_smi_failed_scrapes_total', '', 'How often a source failed and was started again.', [], ({ state }, emit) => {
    let restarts = 0
    for (const source of state.health()) restarts += source.restarts
    emit('', restarts)
  }),
  metric('gauge', 'nvidia_smi_last_collect_success', '', '1 when an NVIDIA GPU can be read, else 0.', [], ({ state }, emit) =>
    emit('', collecting(state) ? 1 : 0),
  ),
  metric(
    'gauge',
    'nvidia_smi_last_collect_success_timestamp_seconds',
    'seconds',
    'When an NVIDIA GPU was last read, in Unix time.',
    [],
    ({ state }, emit) => emit('', seconds(latestSampleAt(state))),
  ),
  metric(
    'gauge',
    'nvidia_smi_last_collect_duration_seconds',
    'seconds',
    'How long the last look took; the longest where there are several sources.',
    [],
    ({ state }, emit) => {
      const longest = longestRead(state)
      emit('', longest === null ? null : longest / 1000)
    },
  ),
  metric(
    'counter',
    'nvidia_smi_xid_errors_total',
    '',
    'How often this XID happened on this GPU since the agent was started.',
    ['uuid', 'xid'],
    ({ state, xids }, emit) => {
      for (const { gpu, code, count } of xids.all()) {
        const own = xidPairs(state, gpu, code)
        if (own !== null) emit(own, count)
      }
    },
  ),
  metric(
    'gauge',
    'nvidia_smi_xid_last_timestamp_seconds',
    'seconds',
    'When this XID last happened on this GPU, in Unix time.',
    ['uuid', 'xid'],
    (context, emit) => {
      for (const [labelPairs, at] of xidTimes(context)) emit(labelPairs, at)
    },
  ),
]
