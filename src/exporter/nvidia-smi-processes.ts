/** Processes with a compute context under that exporter's names. A process on a MIG instance is one of the parent's. */
import type { ProcessView, Reading } from '../core/model.ts'
import { joinPairs, pairs, provenancePairs } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'
import { smiUuid } from './nvidia-smi.ts'

export interface ComputeApp {
  readonly pairs: string
  readonly memoryUsedBytes: Reading
}

export interface ComputeApps {
  /** The largest first, and no more than are named. */
  readonly shown: readonly ComputeApp[]
  /** How many there are, by the labels of their GPU. */
  readonly counts: ReadonlyMap<string, number>
  /** null where there is no NVIDIA GPU to ask. */
  readonly collected: boolean | null
}

export function computeApps(processes: readonly ProcessView[], gpus: readonly GpuSubject[], max: number): ComputeApps {
  const nvidia = gpus.filter(({ info, current }) => info.vendor === 'nvidia' && current)
  const own = new Map<string, { readonly start: string; readonly end: string }>()
  const counts = new Map<string, number>()
  for (const { info, view } of nvidia) {
    const start = pairs({ uuid: smiUuid(info.mig?.parentId ?? info.id) })
    const end = provenancePairs(info.provenance)
    own.set(info.id, { start, end })
    // A card whose list could not be read has an unknown number of processes, not none.
    if (view.sample?.processes) counts.set(joinPairs(start, end), counts.get(joinPairs(start, end)) ?? 0)
  }
  const apps = new Map<string, ComputeApp>()
  for (const { gpu, pid, type, info, memoryUsedBytes } of processes) {
    const labels = own.get(gpu)
    if (labels === undefined || type === 'graphics') continue
    const { start, end } = labels
    const key = joinPairs(`${start},${pairs({ pid, process_name: info?.executable ?? info?.name ?? '' })}`, end)
    const before = apps.get(key)
    if (before === undefined) counts.set(joinPairs(start, end), (counts.get(joinPairs(start, end)) ?? 0) + 1)
    apps.set(key, { pairs: key, memoryUsedBytes: sum(before?.memoryUsedBytes ?? null, memoryUsedBytes) })
  }
  const shown = [...apps.values()].sort((a, b) => (b.memoryUsedBytes ?? -1) - (a.memoryUsedBytes ?? -1)).slice(0, max)
  const collected = nvidia.length === 0 ? null : nvidia.some(({ view }) => view.sample?.processes != null)
  return { shown, counts, collected }
}

function sum(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : a + b
}

const LABELS = ['uuid', 'pid', 'process_name']

export const NVIDIA_SMI_PROCESSES: readonly Metric<ComputeApps>[] = [
  // Dashboards fall back to it where there is no memory to show; for the others it would double the series of every process.
  metric(
    'gauge',
    'nvidia_smi_compute_app_info',
    '',
    'A process that computes on the GPU and whose memory the driver does not tell; always 1.',
    LABELS,
    ({ shown }, emit) => {
      for (const app of shown) if (app.memoryUsedBytes === null) emit(app.pairs, 1)
    },
  ),
  metric(
    'gauge',
    'nvidia_smi_compute_app_used_memory_bytes',
    'bytes',
    'GPU memory of the process; absent where the driver does not tell.',
    LABELS,
    ({ shown }, emit) => {
      for (const app of shown) emit(app.pairs, app.memoryUsedBytes)
    },
  ),
  metric('gauge', 'nvidia_smi_compute_apps', '', 'How many processes compute on the GPU.', ['uuid'], ({ counts }, emit) => {
    for (const [labelPairs, count] of counts) emit(labelPairs, count)
  }),
  metric(
    'gauge',
    'nvidia_smi_compute_apps_last_collect_success',
    '',
    '1 when the processes of an NVIDIA GPU could be read, else 0.',
    [],
    ({ collected }, emit) => emit('', collected === null ? null : collected ? 1 : 0),
  ),
]
