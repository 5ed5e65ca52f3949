/** What each process takes of a GPU: the largest by name, the others of that GPU as one line. */
import type { GpuProcess, ProcessView, Reading } from '../core/model.ts'
import { Labels, provenanceLabels } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'

export interface ProcessRow {
  readonly labels: Labels
  readonly memoryUsedBytes: Reading
  /** null: this row stands for several processes. */
  readonly process: ProcessView | null
}

const LABELS = ['gpu', 'uuid', 'pid', 'user', 'process', 'type']

function byMemory(a: ProcessView, b: ProcessView): number {
  return (b.memoryUsedBytes ?? -1) - (a.memoryUsedBytes ?? -1) || a.pid - b.pid
}

/** Shares `total` places: everybody gets as many as they need or the same as the others. */
export function fairShares(needs: readonly number[], total: number): readonly number[] {
  const shares = needs.map(() => 0)
  const order = needs.map((_, at) => at).sort((a, b) => (needs[a] ?? 0) - (needs[b] ?? 0))
  let left = total
  for (const [served, at] of order.entries()) {
    const share = Math.min(needs[at] ?? 0, Math.floor(left / (order.length - served)))
    shares[at] = share
    left -= share
  }
  return shares
}

/** At most `max` named rows in all, and one more for each GPU that has others. GPUs whose readings are old have none. */
export function processRows(processes: readonly ProcessView[], gpus: readonly GpuSubject[], max: number): readonly ProcessRow[] {
  const groups = new Map<string, ProcessView[]>()
  for (const gpu of gpus) if (gpu.current) groups.set(gpu.info.id, [])
  for (const process of processes) groups.get(process.gpu)?.push(process)
  const shares = fairShares(
    Array.from(groups.values(), (group) => group.length),
    max,
  )
  const rows: ProcessRow[] = []
  const seen = new Set<string>()
  const push = (row: ProcessRow) => {
    if (!seen.has(row.labels.text)) rows.push(row)
    seen.add(row.labels.text)
  }
  let at = 0
  for (const [id, group] of groups) {
    const info = gpus.find((gpu) => gpu.info.id === id)?.info
    const share = shares[at++] ?? 0
    if (info === undefined || group.length === 0) continue
    const start = Labels.of({ gpu: info.label, uuid: info.id })
    const end = provenanceLabels(info.provenance)
    group.sort(byMemory)
    for (const process of group.slice(0, share)) push(namedRow(process, start, end))
    if (group.length > share) push(otherRow(group.slice(share), start, end))
  }
  return rows
}

function namedRow(process: ProcessView, start: Labels, end: Labels): ProcessRow {
  const { pid, type, info, memoryUsedBytes } = process
  const own = Labels.of({ pid, user: info?.user ?? '', process: info?.name ?? '', type })
  return { labels: start.and(own).and(end), memoryUsedBytes, process }
}

const OTHERS = Labels.of({ pid: '', user: '', process: 'other', type: '' })

function otherRow(processes: readonly ProcessView[], start: Labels, end: Labels): ProcessRow {
  let sum: Reading = null
  for (const { memoryUsedBytes } of processes) if (memoryUsedBytes !== null) sum = (sum ?? 0) + memoryUsedBytes
  return { labels: start.and(OTHERS).and(end), memoryUsedBytes: sum, process: null }
}

function ratio(name: string, help: string, of: (process: GpuProcess) => Reading): Metric<readonly ProcessRow[]> {
  return metric('gauge', name, 'ratio', help, LABELS, (rows, emit) => {
    for (const { labels, process } of rows) if (process !== null) emit(labels, of(process))
  })
}

export const PROCESS_METRICS: readonly Metric<readonly ProcessRow[]>[] = [
  metric(
    'gauge',
    'gpu_process_memory_bytes',
    'bytes',
    'GPU memory of a process; those beyond the largest are one line with process other.',
    LABELS,
    (rows, emit) => {
      for (const row of rows) emit(row.labels, row.memoryUsedBytes)
    },
  ),
  ratio('gpu_process_sm_ratio', 'Share of the multiprocessors that a process kept busy.', (process) => process.smRatio),
  ratio(
    'gpu_process_memory_utilization_ratio',
    'Share of time a process kept the memory controller busy.',
    (process) => process.memoryRatio,
  ),
  ratio('gpu_process_encoder_ratio', 'Share of the video encoder that a process used.', (process) => process.encoderRatio),
  ratio('gpu_process_decoder_ratio', 'Share of the video decoder that a process used.', (process) => process.decoderRatio),
]
