/** The whole screen from data and choices: pure, so that a frame can be kept in a file and compared. */
import { drawHost, drawKeys, drawStatus, troubleLines } from './bars.ts'
import { drawFindings } from './findings-panel.ts'
import { CARD_ROWS } from './gpu-card.ts'
import { drawGpus, planGpus } from './gpu-panel.ts'
import { BOLD, Grid, TONE } from './grid.ts'
import { drawOverlay } from './overlays.ts'
import { type Hit, Painter } from './painter.ts'
import { drawProcesses } from './process-panel.ts'
import { type ProcessRow, processRows } from './process-rows.ts'
import type { Panel, ScreenData, Scroll, View } from './screen-data.ts'
import type { Theme } from './theme.ts'
import { drawTraining, linesPerRun, trainingHeight } from './training-panel.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface Frame {
  readonly grid: Grid
  readonly hits: readonly Hit[]
  /** Where panels are scrolled to after what is selected was brought into sight. */
  readonly scroll: Readonly<Record<Panel, Scroll>>
  /** How many rows a panel shows at once: what PgDn moves by. */
  readonly visible: Readonly<Record<Panel, number>>
  readonly processes: readonly ProcessRow[]
  /** Which panel a row of the screen belongs to. */
  readonly panelAt: (y: number, x: number) => Panel | null
}

/** Side by side from this width on. */
const TWO_COLUMNS = 150
const TALL = 30

interface Heights {
  gpus: number
  host: number
  training: number
  processes: number
  findings: number
}

export function render(data: ScreenData, view: View, { columns, rows }: Size, theme: Theme): Frame {
  const grid = new Grid(columns, rows)
  const painter = new Painter(grid, theme)
  const { width, height } = grid
  const shown: ScreenData = view.gpu === null ? data : { ...data, gpus: data.gpus.filter((gpu) => gpu.view.info.id === view.gpu) }
  const list = processRows(data, view, theme.ascii)
  drawStatus(painter, data, view, { x: 0, y: 0, width, height: 1 })
  const troubles = troubleLines(data).slice(0, height >= 16 ? 3 : 1)
  troubles.forEach((text, index) => {
    grid.put(1, 1 + index, `! ${text}`, TONE.critical | BOLD, width - 2)
  })
  const top = 1 + troubles.length
  const bottom = height >= 6 ? height - 1 : height
  if (height >= 6) drawKeys(painter, data, view, { x: 0, y: bottom, width, height: 1 })
  const isWide = width >= TWO_COLUMNS && isShown('training', view) && isShown('findings', view) && data.runs.length > 0
  const room = bottom - top
  // Not by how many the filter leaves: the screen must not jump while somebody types.
  const heights = share(shown, view, data.processes.length, width, room, isWide)
  const plan = planGpus(shown.gpus.length, width, heights.gpus, view.layout, view.gpu !== null)
  const hasFocus = (panel: Panel) => view.focus === panel && view.overlay === null
  const scroll = { ...view.scroll }
  const places: { readonly panel: Panel; readonly x: number; readonly y: number; readonly width: number; readonly height: number }[] = []
  let y = top
  const place = (panel: Panel, tall: number, x = 0, wide = width) => {
    places.push({ panel, x, y, width: wide, height: tall })
    return { x, y, width: wide, height: tall }
  }
  if (heights.gpus > 0) {
    scroll.gpus = drawGpus(painter, shown, plan, place('gpus', plan.height), view.scroll.gpus, hasFocus('gpus'))
    y += plan.height
  }
  if (heights.host > 0) {
    drawHost(painter, data, place('host', 1))
    y += 1
  }
  const below = bottom - y
  const pair = isWide ? Math.max(heights.training, heights.findings) : 0
  const processes = isShown('processes', view) ? Math.max(0, below - (isWide ? pair : heights.training + heights.findings)) : 0
  if (!isWide && heights.training > 0) {
    scroll.training = drawTraining(painter, data, view, place('training', heights.training))
    y += heights.training
  }
  if (processes > 1) {
    scroll.processes = drawProcesses(painter, data, view, list, place('processes', processes))
    y += processes
  }
  if (isWide) {
    const half = Math.floor(width / 2)
    scroll.training = drawTraining(painter, data, view, place('training', pair, 0, half - 1))
    scroll.findings = drawFindings(painter, data, view, place('findings', pair, half, width - half))
  } else if (heights.findings > 0) scroll.findings = drawFindings(painter, data, view, place('findings', heights.findings))
  if (view.overlay) drawOverlay(painter, data, view, view.overlay)
  if (theme.ascii) grid.toAscii()
  const heightOf = (panel: Panel) => places.find((one) => one.panel === panel)?.height ?? 0
  return {
    grid,
    hits: painter.hits,
    scroll,
    visible: {
      gpus: Math.max(1, plan.mode === 'cards' ? Math.floor(plan.height / plan.cardRows) * plan.columns : plan.height - 1),
      host: 1,
      training: Math.max(1, heightOf('training') - 1),
      processes: Math.max(1, heightOf('processes') - 2),
      findings: Math.max(1, heightOf('findings') - 1),
    },
    processes: list,
    panelAt: (row, column) =>
      places.find((one) => row >= one.y && row < one.y + one.height && column >= one.x && column < one.x + one.width)?.panel ?? null,
  }
}

function isShown(panel: Panel, view: View): boolean {
  return !view.hidden.has(panel)
}

/** Who gets how many rows: GPUs and processes first, then findings, then training; nobody more than it can use. */
function share(data: ScreenData, view: View, processes: number, width: number, room: number, isWide: boolean): Heights {
  const heights: Heights = { gpus: 0, host: 0, training: 0, processes: 0, findings: 0 }
  let left = Math.max(0, room)
  const take = (panel: keyof Heights, wanted: number): void => {
    const given = Math.max(0, Math.min(left, wanted))
    heights[panel] += given
    left -= given
  }
  const gpus = isShown('gpus', view)
  const table = isShown('processes', view)
  // The least of everything, in the order of need.
  if (gpus) take('gpus', Math.min(data.gpus.length + 1, Math.max(2, Math.floor(room / 3))))
  if (table) take('processes', Math.min(4, processes + 2))
  if (isShown('findings', view)) take('findings', data.findings.length > 0 ? (room >= 16 ? 2 : 1) : room >= TALL ? 2 : 0)
  if (isShown('host', view)) take('host', 1)
  if (isShown('training', view)) take('training', isWide ? 0 : trainingHeight(data.runs.length, width, room >= 16 ? 3 : room >= 12 ? 1 : 0))
  if (gpus) {
    const all = heights.gpus + left
    const forProcesses = table ? Math.max(0, Math.min(processes + 2, Math.floor(room / 2)) - heights.processes) : 0
    const most = all - Math.min(left, forProcesses)
    const plan = (rows: number) => planGpus(data.gpus.length, width, rows, view.layout, view.gpu !== null)
    // Cards are worth a row or two of the table, as long as they need no more than their least.
    const whole = plan(all)
    const least = whole.mode === 'cards' ? Math.ceil(data.gpus.length / whole.columns) * CARD_ROWS : 0
    const wanted = plan(Math.max(heights.gpus, most, Math.min(all, least))).height
    left += heights.gpus - wanted
    heights.gpus = wanted
  }
  if (isShown('findings', view) && data.findings.length > 1)
    take('findings', Math.min(data.findings.length - 1, room >= TALL ? 5 : room >= 18 ? 1 : 0))
  if (isShown('training', view) && !isWide) {
    const wanted = trainingHeight(data.runs.length, width, room >= TALL ? 9 : 3)
    const per = linesPerRun(width, wanted)
    take('training', Math.floor(Math.max(0, Math.min(left, wanted - heights.training)) / per) * per)
  }
  if (isWide) {
    const wanted = Math.max(heights.findings, trainingHeight(data.runs.length, width / 2, 9))
    take('findings', wanted - heights.findings)
    heights.training = heights.findings
  }
  heights.processes += table ? left : 0
  return heights
}
