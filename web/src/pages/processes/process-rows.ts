/** The processes on all GPUs as rows: which are shown, and in which order. */
import type { GpuProcessType, ProcessView, Reading } from '../../../../src/core/model.ts'
import { placeOf } from '../../words.ts'
import type { ProcessMark } from './process-marks.ts'

export interface ProcessRow {
  /** `pid@gpu`: the same process on two GPUs is two rows. */
  readonly key: string
  readonly process: ProcessView
  readonly gpuLabel: string
  /** False: the readings are old; the process may be gone. */
  readonly isCurrent: boolean
  readonly marks: readonly ProcessMark[]
  readonly command: string | null
  readonly place: string | null
}

export function rowOf(process: ProcessView, gpuLabel: string, isCurrent: boolean, marks: readonly ProcessMark[]): ProcessRow {
  const { info } = process
  return {
    key: `${process.pid}@${gpuLabel}`,
    process,
    gpuLabel,
    isCurrent,
    marks,
    command: info?.command && info.command.length > 0 ? info.command.join(' ') : (info?.name ?? null),
    place: placeOf(process),
  }
}

export type ColumnName = 'pid' | 'user' | 'gpu' | 'type' | 'memory' | 'sm' | 'cpu' | 'ram' | 'since' | 'place' | 'command' | 'marks'

export interface Column {
  readonly name: ColumnName
  readonly label: string
  readonly isNumber: boolean
  /** What it is sorted by; null sorts last in either direction. */
  readonly value: (row: ProcessRow) => Reading | string
}

export const COLUMNS: readonly Column[] = [
  { name: 'pid', label: 'PID', isNumber: false, value: ({ process }) => process.pid },
  { name: 'user', label: 'User', isNumber: false, value: ({ process }) => process.info?.user ?? null },
  { name: 'gpu', label: 'GPU', isNumber: false, value: ({ gpuLabel }) => gpuLabel },
  { name: 'marks', label: 'Marks', isNumber: false, value: ({ marks }) => (marks.length === 0 ? null : marks.length) },
  { name: 'type', label: 'Type', isNumber: false, value: ({ process }): GpuProcessType => process.type },
  { name: 'memory', label: 'GPU memory', isNumber: true, value: ({ process }) => process.memoryUsedBytes },
  { name: 'sm', label: 'GPU %', isNumber: true, value: ({ process }) => process.smRatio },
  { name: 'cpu', label: 'CPU %', isNumber: true, value: ({ process }) => process.info?.cpuRatio ?? null },
  { name: 'ram', label: 'RAM', isNumber: true, value: ({ process }) => process.info?.residentBytes ?? null },
  { name: 'since', label: 'Running since', isNumber: false, value: ({ process }) => process.info?.startedAt ?? null },
  { name: 'place', label: 'Container or job', isNumber: false, value: ({ place }) => place },
  { name: 'command', label: 'Command', isNumber: false, value: ({ command }) => command },
]

export interface Order {
  readonly column: ColumnName
  readonly isDescending: boolean
}

export const USUAL_ORDER: Order = { column: 'memory', isDescending: true }

/** `memory`, or `-memory` for the largest first; anything else is the usual order. */
export function parseOrder(text: string | undefined): Order {
  const column = COLUMNS.find(({ name }) => name === text?.replace(/^-/, ''))
  return column ? { column: column.name, isDescending: text?.startsWith('-') ?? false } : USUAL_ORDER
}

export function orderText({ column, isDescending }: Order): string {
  return `${isDescending ? '-' : ''}${column}`
}

/** What a click on a column's head asks for: figures begin with the largest, and a second click turns round. */
export function nextOrder(current: Order, column: Column): Order {
  if (current.column === column.name) return { ...current, isDescending: !current.isDescending }
  return { column: column.name, isDescending: column.isNumber || column.name === 'marks' }
}

export function sortRows(rows: readonly ProcessRow[], { column, isDescending }: Order): readonly ProcessRow[] {
  const value = COLUMNS.find(({ name }) => name === column)?.value ?? (() => null)
  const sign = isDescending ? -1 : 1
  return [...rows].sort((a, b) => {
    const [one, other] = [value(a), value(b)]
    if (one === null || other === null) return one === other ? tie(a, b) : one === null ? 1 : -1
    return sign * compare(one, other) || tie(a, b)
  })
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return String(a).localeCompare(String(b), undefined, { numeric: true })
}

/** Equals keep their place from one second to the next. */
function tie(a: ProcessRow, b: ProcessRow): number {
  return a.process.pid - b.process.pid || compare(a.gpuLabel, b.gpuLabel)
}

/** The order that was there, as far as the same rows are: for a table that must not move under the pointer. */
export function keepOrder(rows: readonly ProcessRow[], keys: readonly string[]): readonly ProcessRow[] {
  const place = new Map(keys.map((key, index) => [key, index]))
  const at = ({ key }: ProcessRow) => place.get(key) ?? keys.length
  return rows
    .map((row, index) => ({ row, index }))
    .sort((a, b) => at(a.row) - at(b.row) || a.index - b.index)
    .map(({ row }) => row)
}

const FIELDS: Readonly<Record<string, (row: ProcessRow) => string>> = {
  pid: ({ process }) => String(process.pid),
  user: ({ process }) => process.info?.user ?? '',
  gpu: ({ gpuLabel }) => gpuLabel,
}

/** Every word must match; `pid:12`, `user:ada` and `gpu:0` match exactly. */
export function filterRows(rows: readonly ProcessRow[], text: string): readonly ProcessRow[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  return words.length === 0 ? rows : rows.filter((row) => words.every((word) => matches(row, word)))
}

function matches(row: ProcessRow, word: string): boolean {
  const [, field = '', wanted = ''] = /^(pid|user|gpu):(.+)$/.exec(word) ?? []
  const exact = FIELDS[field]
  if (exact) return exact(row).toLowerCase() === wanted
  const { process, gpuLabel, command, place, marks } = row
  const { info } = process
  const said = [process.pid, info?.user, `gpu ${gpuLabel}`, command, info?.name, info?.executable, info?.container, place, process.type]
  return [...said, ...marks.map(({ label }) => label)].some(
    (one) => one !== null && one !== undefined && String(one).toLowerCase().includes(word),
  )
}
