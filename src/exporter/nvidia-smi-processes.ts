/** Processes with a compute context under that exporter's names. A process on a MIG instance is one of the parent's. */
import type { ProcessView, Reading } from '../core/model.ts'
import { Figures, Labels, NO_LABELS, provenanceLabels, sum } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'
import { smiUuid } from './nvidia-smi.ts'

export interface ComputeApp {
  readonly labels: Labels
  readonly memoryUsedBytes: Reading
}

export interface ComputeApps {
  /** The largest first, and no more than are named. */
  readonly shown: readonly ComputeApp[]
  /** How many there are, for each GPU. */
  readonly counts: Figures
  /** null where there is no NVIDIA GPU to ask. */
  readonly collected: boolean | null
}

export function computeApps(processes: readonly ProcessView[], gpus: readonly GpuSubject[], max: number): ComputeApps {
  const present = gpus.filter(({ current }) => current)
  const own = new Map<string, { readonly start: Labels; readonly end: Labels; readonly gpu: Labels }>()
  const counts = new Figures()
  for (const { info, view } of present) {
    const start = Labels.of({ uuid: smiUuid(info.mig?.parentId ?? info.id) })
    const end = provenanceLabels(info.provenance)
    const gpu = start.and(end)
    own.set(info.id, { start, end, gpu })
    // A card whose list could not be read has an unknown number of processes, not none.
    if (view.sample?.processes) counts.add(gpu, 0, sum)
  }
  const apps = new Map<string, ComputeApp>()
  for (const { gpu, pid, type, info, memoryUsedBytes } of processes) {
    const known = own.get(gpu)
    if (known === undefined || type === 'graphics') continue
    const labels = known.start.and(Labels.of({ pid, process_name: info?.executable ?? info?.name ?? '' })).and(known.end)
    const before = apps.get(labels.text)
    if (before === undefined) counts.add(known.gpu, 1, sum)
    apps.set(labels.text, { labels, memoryUsedBytes: sumKnown(before?.memoryUsedBytes ?? null, memoryUsedBytes) })
  }
  const shown = [...apps.values()].sort((a, b) => (b.memoryUsedBytes ?? -1) - (a.memoryUsedBytes ?? -1)).slice(0, max)
  const collected = present.length === 0 ? null : present.some(({ view }) => view.sample?.processes != null)
  return { shown, counts, collected }
}

function sumKnown(a: Reading, b: Reading): Reading {
  return a === null ? b : b === null ? a : a + b
}

const LABELS = ['uuid', 'pid', 'process_name']

export const NVIDIA_SMI_PROCESSES: readonly Metric<ComputeApps>[] = [
  // Dashboards fall back to it where there is no memory to show; for the others it would double the series of every process.
  metric(
    'gauge',
    'nvidia_smi_compute_app_info',
    '',
    'A compute process whose memory the driver does not report; always 1.',
    LABELS,
    ({ shown }, emit) => {
      for (const app of shown) if (app.memoryUsedBytes === null) emit(app.labels, 1)
    },
  ),
  metric(
    'gauge',
    'nvidia_smi_compute_app_used_memory_bytes',
    'bytes',
    'GPU memory of the process; absent if the driver does not report it.',
    LABELS,
    ({ shown }, emit) => {
      for (const app of shown) emit(app.labels, app.memoryUsedBytes)
    },
  ),
  metric('gauge', 'nvidia_smi_compute_apps', '', 'How many processes compute on the GPU.', ['uuid'], ({ counts }, emit) =>
    counts.emit(emit),
  ),
  metric(
    'gauge',
    'nvidia_smi_compute_apps_last_collect_success',
    '',
    '1 when the processes of an NVIDIA GPU could be read, else 0.',
    [],
    ({ collected }, emit) => emit(NO_LABELS, collected === null ? null : collected ? 1 : 0),
  ),
]
