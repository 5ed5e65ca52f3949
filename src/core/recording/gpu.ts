/** Parses a `gpu_metrics` line, the inverse of gpuRecord. Missing fields are null, unknown ones are ignored. */
import { type Mutable, nothingKnown } from '../fields/field.ts'
import { GPU_STATES } from '../fields/gpu.ts'
import { GPU_PROCESS_TYPES, PROCESS_INFO, PROCESS_SHARES } from '../fields/process.ts'
import type { GpuField, GpuProcess, GpuSample, ProcessInfo } from '../model.ts'
import {
  fromColumn,
  GPU_COLUMNS,
  type GpuColumn,
  type JsonRecord,
  NO_READINGS,
  PROCESS_COLUMNS,
  SHARE_COLUMNS,
  SLOW_FIELDS,
} from '../record.ts'
import { Fields, type LineInput, openLine, type Parsed, textNumber } from './json.ts'

/** The sample, and what the line says about the device and its processes. */
export interface GpuLine {
  readonly kind: 'gpu_line'
  readonly at: number
  /** Slow fields of this line only; SlowCarry fills in earlier ones. */
  readonly sample: GpuSample
  readonly index: number | null
  readonly name: string | null
  readonly label: string | null
  readonly isSimulated: boolean
  /** Processes that the line identifies. */
  readonly infos: readonly ProcessInfo[]
}

const COLUMNS: ReadonlyMap<string, GpuColumn> = new Map(GPU_COLUMNS.map((column) => [column.column, column]))

/** Copied as a whole, four times as fast as building an object: at 100,000 lines per second it counts. */
export const UNREAD: Mutable<GpuSample> = {
  kind: 'gpu',
  at: 0,
  gpu: '',
  state: 'ok',
  stateReason: null,
  slowAt: null,
  processes: null,
  ...NO_READINGS,
}
const UNREAD_PROCESS: Mutable<GpuProcess> = { pid: 0, type: 'compute', memoryUsedBytes: null, ...nothingKnown(PROCESS_SHARES) }
const NOBODY: Mutable<ProcessInfo> = { pid: 0, command: null, ...nothingKnown(PROCESS_INFO) }
const NO_INFOS: readonly ProcessInfo[] = []

/** Id of a GPU whose recording has none. */
export function replayGpuId(index: number): string {
  return `replay-gpu-${index}`
}

export function parseGpuLine(line: LineInput): Parsed<GpuLine> {
  const open = openLine(line)
  if (typeof open === 'string') return open
  const { at, record, fields } = open
  const index = fields.finite('gpu_index')
  const uuid = fields.text('gpu_uuid')
  if (index === null && uuid === null) return 'wrong_type'
  const sample = { ...UNREAD }
  sample.at = at
  sample.gpu = uuid ?? replayGpuId(index ?? 0)
  if (record.state !== undefined) sample.state = fields.choice('state', GPU_STATES, 'ok')
  sample.stateReason = fields.text('state_reason')
  if (!readColumns(record, sample)) return 'wrong_type'
  let infos = NO_INFOS
  if (record.processes !== undefined && record.processes !== null) {
    const rows = readProcesses(record.processes)
    if (rows === null) return 'wrong_type'
    sample.processes = rows.processes
    infos = rows.infos
  }
  const name = fields.text('gpu_name')
  const label = fields.text('gpu_label')
  const isSimulated = record.provenance === 'simulated'
  return fields.bad ? 'wrong_type' : { kind: 'gpu_line', at, sample, index, name, label, isSimulated, infos }
}

/** Walks the keys of the line, not the table: a line holds about half of the columns. */
function readColumns(record: JsonRecord, sample: Mutable<GpuSample>): boolean {
  for (const name in record) {
    const column = COLUMNS.get(name)
    if (column === undefined) continue
    const value = record[name]
    if (typeof value === 'number') {
      // JSON.parse reads 1e999 as Infinity.
      if (Number.isFinite(value)) sample[column.field] = fromColumn(value, column.scale)
    } else if (value !== null && textNumber(value) === undefined) return false
    if (column.slow) sample.slowAt = sample.at
  }
  return true
}

function readProcesses(value: unknown): { processes: GpuProcess[]; infos: readonly ProcessInfo[] } | null {
  if (!Array.isArray(value)) return null
  const processes: GpuProcess[] = []
  let infos: ProcessInfo[] | null = null
  for (const row of value) {
    if (typeof row !== 'object' || row === null) return null
    const fields = new Fields(row as JsonRecord)
    const process = { ...UNREAD_PROCESS }
    process.pid = fields.required('pid')
    process.type = fields.choice('type', GPU_PROCESS_TYPES, 'compute')
    process.memoryUsedBytes = fields.bytes('memory_used_mb')
    fields.fill(SHARE_COLUMNS, process)
    const info = readProcessInfo(process.pid, fields)
    if (fields.bad) return null
    processes.push(process)
    if (info !== null) {
      infos ??= []
      infos.push(info)
    }
  }
  return { processes, infos: infos ?? NO_INFOS }
}

/** null: the row has no process fields. */
function readProcessInfo(pid: number, fields: Fields): ProcessInfo | null {
  const info = { ...NOBODY }
  info.pid = pid
  return fields.fill(PROCESS_COLUMNS, info) ? info : null
}

const SLOW_LIST: readonly GpuField[] = [...SLOW_FIELDS]

/** Carries slow readings per GPU to the lines without them. A GPU that could not be read loses them until they are read again. */
export class SlowCarry {
  readonly #last = new Map<string, GpuSample>()

  /** In place: the sample belongs to this reader. */
  fill(sample: GpuSample): GpuSample {
    if (sample.slowAt !== null) {
      this.#last.set(sample.gpu, sample)
      return sample
    }
    const held = this.#last.get(sample.gpu)
    if (held === undefined) return sample
    if (sample.state !== 'ok' && sample.state !== 'reset_required') {
      this.#last.delete(sample.gpu)
      return sample
    }
    const filled: Mutable<GpuSample> = sample
    for (const field of SLOW_LIST) filled[field] = held[field]
    filled.slowAt = held.slowAt
    return filled
  }
}
