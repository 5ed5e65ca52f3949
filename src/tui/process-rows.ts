/** Which processes are listed, in which order, and what is remarkable about them. Pure. */
import { printable } from '../core/format.ts'
import type { Finding, ProcessView, Reading } from '../core/model.ts'
import { processKey, type ScreenData, type Sort, type View } from './screen-data.ts'

export type Mark = 'intruder' | 'idle' | 'zombie' | null

export interface ProcessRow {
  readonly key: string
  readonly process: ProcessView
  readonly gpuLabel: string
  readonly user: string
  readonly job: string
  readonly command: string
  readonly memoryShare: Reading
  readonly ageMs: Reading
  readonly mark: Mark
  /** `├─ ` and the like, in the tree. */
  readonly branch: string
}

const MARKS: Readonly<Record<string, Exclude<Mark, null>>> = { intruder: 'intruder', idle_holding: 'idle', zombie: 'zombie' }
const MARK_ORDER = { intruder: 0, zombie: 1, idle: 2 } as const

export function processRows(data: ScreenData, view: View, ascii: boolean): ProcessRow[] {
  const labels = new Map(data.gpus.map(({ view: { info } }) => [info.id, info.label]))
  const totals = new Map(data.gpus.map(({ view: { info, sample } }) => [info.id, sample?.memoryTotalBytes ?? info.memoryTotalBytes]))
  const order = new Map(data.gpus.map(({ view: { info } }, index) => [info.id, index]))
  const marks = marksOf(data.findings)
  const wanted = view.filter.toLowerCase()
  const rows = data.processes
    .filter((process) => view.gpu === null || process.gpu === view.gpu)
    .map((process): ProcessRow => {
      const { info } = process
      return {
        key: processKey(process),
        process,
        gpuLabel: labels.get(process.gpu) ?? '?',
        user: printable(info?.user ?? (info?.uid == null ? 'N/A' : String(info.uid))),
        job: printable(jobOf(process)),
        command: printable(info?.command?.join(' ') || info?.name || 'N/A'),
        memoryShare: shareOf(process.memoryUsedBytes, totals.get(process.gpu) ?? null),
        ageMs: info?.startedAt == null ? null : Math.max(0, data.at - info.startedAt),
        mark: marks.get(markKey(process.pid, process.gpu)) ?? marks.get(markKey(process.pid, null)) ?? null,
        branch: '',
      }
    })
    .filter((row) => wanted === '' || searchable(row).includes(wanted))
  const compare = comparison(view.sort, order)
  const sign = view.descending ? -1 : 1
  rows.sort((a, b) => sign * compare(a, b) || fallback(a, b, order))
  return view.tree ? asTree(rows, ascii) : rows
}

function shareOf(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : used / total
}

function searchable(row: ProcessRow): string {
  return `${row.process.pid} ${row.user} ${row.command} ${row.job} gpu${row.gpuLabel} ${row.process.type} ${row.mark ?? ''}`.toLowerCase()
}

/** Slurm before the container: it is the name that people know. */
export function jobOf({ info }: ProcessView): string {
  if (!info) return ''
  if (info.slurmJob !== null) return `slurm:${info.slurmJob}`
  if (info.pod !== null) return `pod:${info.pod}`
  return info.container === null ? '' : info.container.replace(/:([0-9a-f]{12})[0-9a-f]+$/, ':$1')
}

function marksOf(findings: readonly Finding[]): Map<string, Mark> {
  const marks = new Map<string, Mark>()
  for (const { detector, subject } of findings) {
    const mark = MARKS[detector]
    if (!mark || subject.pid === null) continue
    const key = markKey(subject.pid, subject.gpu)
    const before = marks.get(key)
    if (!before || MARK_ORDER[mark] < MARK_ORDER[before]) marks.set(key, mark)
  }
  return marks
}

function markKey(pid: number, gpu: string | null): string {
  return `${pid}@${gpu ?? ''}`
}

type Comparison = (a: ProcessRow, b: ProcessRow) => number

/** Text from A, figures from the largest: what people want to see first. */
function comparison(sort: Sort, order: ReadonlyMap<string, number>): Comparison {
  switch (sort) {
    case 'gpu':
      return (a, b) => (order.get(a.process.gpu) ?? 0) - (order.get(b.process.gpu) ?? 0)
    case 'pid':
      return (a, b) => a.process.pid - b.process.pid
    case 'memory':
      return largest((row) => row.process.memoryUsedBytes)
    case 'sm':
      return largest((row) => row.process.smRatio)
    case 'share':
      return largest((row) => row.memoryShare)
    case 'bandwidth':
      return largest((row) => row.process.memoryRatio)
    case 'encoder':
      return largest((row) => row.process.encoderRatio)
    case 'decoder':
      return largest((row) => row.process.decoderRatio)
    case 'cpu':
      return largest((row) => row.process.info?.cpuRatio ?? null)
    case 'ram':
      return largest((row) => row.process.info?.residentBytes ?? null)
    case 'time':
      return largest((row) => row.ageMs)
    case 'type':
      return text((row) => row.process.type)
    case 'job':
      return text((row) => row.job)
    default:
      return text((row) => row[sort])
  }
}

function largest(of: (row: ProcessRow) => Reading): Comparison {
  return (a, b) => (of(b) ?? -1) - (of(a) ?? -1)
}

function text(of: (row: ProcessRow) => string): Comparison {
  return (a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0)
}

function fallback(a: ProcessRow, b: ProcessRow, order: ReadonlyMap<string, number>): number {
  return (
    (order.get(a.process.gpu) ?? 0) - (order.get(b.process.gpu) ?? 0) ||
    (b.process.memoryUsedBytes ?? -1) - (a.process.memoryUsedBytes ?? -1) ||
    a.process.pid - b.process.pid
  )
}

/** Children below their parents; workers of one launcher below the first of them, because the launcher itself is on no GPU. */
function asTree(rows: readonly ProcessRow[], ascii: boolean): ProcessRow[] {
  const pids = new Set(rows.map((row) => row.process.pid))
  const leaders = new Map<number, number>()
  const parentOf = (row: ProcessRow): number | null => {
    const parent = row.process.info?.parentPid ?? null
    if (parent === null || parent <= 1) return null
    if (pids.has(parent)) return parent
    const leader = leaders.get(parent) ?? row.process.pid
    leaders.set(parent, leader)
    return leader === row.process.pid ? null : leader
  }
  const children = new Map<number | null, ProcessRow[]>()
  for (const row of rows) {
    const parent = parentOf(row)
    const list = children.get(parent)
    if (list) list.push(row)
    else children.set(parent, [row])
  }
  const [tee, corner, bar] = ascii ? ['|- ', '`- ', '|  '] : ['├─ ', '└─ ', '│  ']
  const out: ProcessRow[] = []
  const seen = new Set<string>()
  const visit = (row: ProcessRow, lead: string, branch: string): void => {
    if (seen.has(row.key)) return
    seen.add(row.key)
    out.push({ ...row, branch: lead + branch })
    const below = (children.get(row.process.pid) ?? []).filter((child) => !seen.has(child.key))
    // A process on several GPUs has a row for each; its children hang below the first.
    below.forEach((child, index) => {
      visit(child, branch === '' ? '' : lead + (branch === corner ? '   ' : bar), index === below.length - 1 ? corner : tee)
    })
  }
  for (const row of children.get(null) ?? []) visit(row, '', '')
  for (const row of rows) visit(row, '', '')
  return out
}
