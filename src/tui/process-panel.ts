import { formatPercent } from '../core/format.ts'
import { BOLD, type Rect, SELECTED, type Style, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import type { ProcessRow } from './process-rows.ts'
import { type ScreenData, type Scroll, SORTS, type Sort, type View } from './screen-data.ts'
import { follow, range } from './scroll.ts'
import { padEnd, padStart } from './text-width.ts'
import { shortBytes, shortDuration } from './words.ts'

interface Column {
  readonly sort: Sort
  readonly title: string
  readonly width: number
  readonly right?: true
  /** The least width of the table at which it is shown. */
  readonly from: number
  readonly text: (row: ProcessRow) => string
}

const TYPES = { compute: 'C', graphics: 'G', both: 'C+G' } as const

const COLUMNS: readonly Column[] = [
  { sort: 'pid', title: 'PID', width: 7, right: true, from: 0, text: (row) => String(row.process.pid) },
  { sort: 'user', title: 'USER', width: 9, from: 48, text: (row) => row.user },
  { sort: 'gpu', title: 'GPU', width: 4, from: 0, text: (row) => row.gpuLabel },
  { sort: 'type', title: 'TYPE', width: 4, from: 72, text: (row) => TYPES[row.process.type] },
  { sort: 'memory', title: 'GPU-MEM', width: 7, right: true, from: 0, text: (row) => shortBytes(row.process.memoryUsedBytes) },
  { sort: 'share', title: 'MEM%', width: 5, right: true, from: 126, text: (row) => formatPercent(row.memoryShare) },
  { sort: 'sm', title: 'UTIL', width: 4, right: true, from: 54, text: (row) => formatPercent(row.process.smRatio) },
  { sort: 'bandwidth', title: 'MBW', width: 4, right: true, from: 132, text: (row) => formatPercent(row.process.memoryRatio) },
  { sort: 'encoder', title: 'ENC', width: 4, right: true, from: 150, text: (row) => formatPercent(row.process.encoderRatio) },
  { sort: 'decoder', title: 'DEC', width: 4, right: true, from: 150, text: (row) => formatPercent(row.process.decoderRatio) },
  { sort: 'cpu', title: 'CPU', width: 5, right: true, from: 60, text: (row) => formatPercent(row.process.info?.cpuRatio ?? null) },
  { sort: 'ram', title: 'RAM', width: 6, right: true, from: 78, text: (row) => shortBytes(row.process.info?.residentBytes ?? null) },
  { sort: 'time', title: 'TIME', width: 6, right: true, from: 66, text: (row) => (row.ageMs === null ? 'N/A' : shortDuration(row.ageMs)) },
  { sort: 'job', title: 'JOB', width: 19, from: 118, text: (row) => row.job || '-' },
]

const MARKS = {
  intruder: { sign: '!', style: TONE.critical | BOLD },
  zombie: { sign: 'x', style: TONE.warning | BOLD },
  idle: { sign: 'z', style: TONE.warning },
} as const

export function drawProcesses(painter: Painter, data: ScreenData, view: View, rows: readonly ProcessRow[], rect: Rect): Scroll {
  const { x, y, width, height } = rect
  const isFocused = view.focus === 'processes' && view.overlay === null
  const found = rows.findIndex((row) => row.key === view.process)
  const selected = found < 0 ? view.scroll.processes.selected : found
  // What hides rows has to be said wherever there is room for it at all.
  const hasTitle = height >= 5 || (height >= 3 && (view.filter !== '' || view.gpu !== null))
  const top = y + (hasTitle ? 1 : 0)
  const visible = Math.max(0, y + height - top - 1)
  const kept = follow({ offset: view.scroll.processes.offset, selected }, rows.length, Math.max(1, visible))
  if (hasTitle) title(painter, data, view, rows, rect, kept, visible)
  const columns = COLUMNS.filter((column) => width >= column.from)
  drawHeader(painter, view, columns, x, top, width)
  if (rows.length === 0) {
    const none = data.processes.length > 0 ? `none of ${data.processes.length} matches` : noneText(data)
    painter.grid.put(x + 2, top + 1, visible > 0 ? none : '', TONE.muted, width - 2)
  }
  rows.slice(kept.offset, kept.offset + visible).forEach((row, index) => {
    drawRow(painter, row, columns, x, top + 1 + index, width, isFocused && kept.offset + index === kept.selected)
  })
  return kept
}

function title(
  painter: Painter,
  data: ScreenData,
  view: View,
  rows: readonly ProcessRow[],
  { x, y, width }: Rect,
  kept: Scroll,
  visible: number,
): void {
  const focused = data.gpus.find((gpu) => gpu.view.info.id === view.gpu)?.view.info.label
  const parts: Span[] = [
    { text: `Processes ${range(kept, visible, rows.length)}` },
    { text: view.gpu === null ? '' : `on GPU ${focused ?? '?'} (0 shows all)`, style: TONE.accent },
    { text: view.filter === '' ? '' : `filter "${view.filter}"`, style: TONE.accent },
    { text: view.tree ? 'tree' : '', style: TONE.muted },
    { text: data.host?.sample.processesReason ?? '', style: TONE.warning },
  ]
  painter.rule(x, y, width, parts, view.focus === 'processes')
  painter.hit({ x, y, width, height: 1 }, { kind: 'panel', panel: 'processes' })
}

function noneText(data: ScreenData): string {
  return data.gpus.some((gpu) => gpu.view.sample?.processes === null) ? 'the process list cannot be read' : 'no process uses the GPUs'
}

function drawHeader(painter: Painter, view: View, columns: readonly Column[], x: number, y: number, width: number): void {
  let column = x + 1
  const arrow = painter.ascii ? (view.descending ? '^' : 'v') : view.descending ? '▲' : '▼'
  const put = (sort: Sort, title: string, room: number, right: boolean): void => {
    const isSorted = sort === view.sort
    const text = isSorted ? `${title.slice(0, Math.max(1, room - 1))}${arrow}` : title
    painter.grid.put(column, y, right ? padStart(text, room) : padEnd(text, room), isSorted ? TONE.accent | BOLD : TONE.muted, room)
    painter.hit({ x: column, y, width: room, height: 1 }, { kind: 'sort', sort })
    column += room + 1
  }
  for (const { sort, title, width: room, right } of columns) put(sort, title, room, right === true)
  put('command', 'COMMAND', Math.max(0, x + width - column), false)
}

function drawRow(
  painter: Painter,
  row: ProcessRow,
  columns: readonly Column[],
  x: number,
  y: number,
  width: number,
  isSelected: boolean,
): void {
  const { grid } = painter
  painter.hit({ x, y, width, height: 1 }, { kind: 'process', key: row.key })
  const mark = row.mark === null ? null : MARKS[row.mark]
  if (mark) grid.put(x, y, mark.sign, mark.style)
  const base: Style = row.mark === 'intruder' ? TONE.critical : TONE.text
  let column = x + 1
  for (const { sort, width: room, right, text } of columns) {
    const value = text(row)
    const style =
      value === 'N/A' || value === '-'
        ? TONE.faint
        : sort === 'memory'
          ? base | BOLD
          : sort === 'type' || sort === 'job'
            ? TONE.muted
            : base
    grid.put(column, y, right ? padStart(value, room) : padEnd(value, room), style, room)
    column += room + 1
  }
  column += grid.put(column, y, row.branch, TONE.faint, x + width - column)
  grid.put(column, y, row.command, base, x + width - column)
  if (isSelected) grid.mark({ x, y, width, height: 1 }, SELECTED)
}

export const SORT_TITLES: Readonly<Record<Sort, string>> = Object.fromEntries(
  SORTS.map((sort) => [sort, COLUMNS.find((column) => column.sort === sort)?.title ?? 'COMMAND']),
) as Record<Sort, string>
