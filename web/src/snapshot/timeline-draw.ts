/** Draws the stacked bands of a timeline on a canvas: one column a pixel, whatever the file holds. */

import type { Band, SnapshotMark } from '../../../src/core/memory/snapshot-picture.ts'
import { type ChartColors, seriesColor, translucent } from '../chart/palette.ts'
import { formatBytes } from '../words.ts'
import type { ColumnLevels } from './column-levels.ts'

export const AXIS = { left: 64, right: 8, top: 14, bottom: 24 } as const

/** Events that are shown; both may be between two. */
export interface View {
  readonly from: number
  readonly to: number
}

export interface TimelineScene {
  readonly levels: ColumnLevels
  readonly view: View
  readonly topBytes: number
  readonly palette: ChartColors
  /** By band. */
  readonly colors: readonly string[]
  /** Stands out; null: all are alike. */
  readonly pinned: number | null
  readonly moment: number | null
  readonly marks: readonly SnapshotMark[]
  readonly labelAt: (column: number) => string
}

const PALETTE_SIZE = 8
const MOST_STEP_MARKS = 80
const TICK_PX = 110
const LABEL_PX = 90
const GRID_LINES = 5

/** By band: the largest have the colors that are easiest to tell apart, the last one, of all others, is pale. */
export function bandColors(palette: ChartColors, bands: readonly Pick<Band, 'mostBytes'>[]): readonly string[] {
  const order = [...bands.keys()].slice(0, -1).sort((a, b) => (bands[b]?.mostBytes ?? 0) - (bands[a]?.mostBytes ?? 0))
  return bands.map((_, band) => {
    const rank = order.indexOf(band)
    if (rank < 0) return palette.pale
    const color = seriesColor(palette, rank % PALETTE_SIZE)
    return rank < PALETTE_SIZE ? color : translucent(color, 0.55)
  })
}

export function plotWidth(width: number): number {
  return Math.max(1, Math.round(width - AXIS.left - AXIS.right))
}

export function eventAt(x: number, width: number, { from, to }: View): number {
  return from + ((x - AXIS.left) / plotWidth(width)) * (to - from)
}

export function bytesAt(y: number, height: number, topBytes: number): number {
  return ((height - AXIS.bottom - y) / (height - AXIS.top - AXIS.bottom)) * topBytes
}

export function drawTimeline(canvas: HTMLCanvasElement, scene: TimelineScene): void {
  const scale = devicePixelRatio || 1
  const [width, height] = [canvas.clientWidth, canvas.clientHeight]
  const context = canvas.getContext('2d')
  if (width === 0 || height === 0 || !context) return
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) }
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size)
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.clearRect(0, 0, width, height)
  context.font = '11px system-ui, sans-serif'
  drawGrid(context, scene, width, height)
  drawBands(context, scene, width, height)
  drawMarks(context, scene, width, height)
  drawTicks(context, scene, width, height)
}

function yOf(bytes: number, height: number, topBytes: number): number {
  return height - AXIS.bottom - (bytes / topBytes) * (height - AXIS.top - AXIS.bottom)
}

function xOf(event: number, width: number, { from, to }: View): number {
  return AXIS.left + ((event - from) / (to - from)) * plotWidth(width)
}

/** Whole units in steps of 1, 2, 4, 8 … */
export function byteTicks(topBytes: number): number[] {
  let step = 1
  while (topBytes / step > GRID_LINES) step *= 2
  return Array.from({ length: Math.floor(topBytes / step) + 1 }, (_, i) => i * step)
}

function drawGrid(context: CanvasRenderingContext2D, { topBytes, palette }: TimelineScene, width: number, height: number): void {
  context.textAlign = 'right'
  context.textBaseline = 'middle'
  for (const bytes of byteTicks(topBytes)) {
    const y = Math.round(yOf(bytes, height, topBytes)) + 0.5
    context.strokeStyle = palette.grid
    context.beginPath()
    context.moveTo(AXIS.left, y)
    context.lineTo(width - AXIS.right, y)
    context.stroke()
    context.fillStyle = palette.faint
    context.fillText(formatBytes(bytes), AXIS.left - 6, y)
  }
}

function drawBands(context: CanvasRenderingContext2D, scene: TimelineScene, width: number, height: number): void {
  const { levels, view, topBytes, palette, pinned, colors } = scene
  const pixels = plotWidth(width)
  const columns = levels.pixelColumns(view.from, view.to, pixels)
  const bottom = height - AXIS.bottom
  const perByte = (bottom - AXIS.top) / topBytes
  const [lower, upper] = [new Float64Array(pixels), new Float64Array(pixels)]
  const first = columns.findIndex((column) => column >= 0)
  const last = columns.findLastIndex((column) => column >= 0)
  if (first < 0) return
  for (const [band, values] of levels.bands.entries()) {
    let isEmpty = true
    for (let pixel = first; pixel <= last; pixel++) {
      const bytes = values[columns[pixel] as number] as number
      if (bytes > 0) isEmpty = false
      upper[pixel] = (lower[pixel] as number) + bytes * perByte
    }
    if (!isEmpty) {
      context.beginPath()
      for (let pixel = first; pixel <= last; pixel++) {
        const y = bottom - (upper[pixel] as number)
        context.lineTo(AXIS.left + pixel, y)
        context.lineTo(AXIS.left + pixel + 1, y)
      }
      for (let pixel = last; pixel >= first; pixel--) {
        const y = bottom - (lower[pixel] as number)
        context.lineTo(AXIS.left + pixel + 1, y)
        context.lineTo(AXIS.left + pixel, y)
      }
      context.fillStyle = colors[band] ?? palette.pale
      context.globalAlpha = pinned === null ? 0.85 : pinned === band ? 1 : 0.22
      context.fill()
    }
    lower.set(upper)
  }
  context.globalAlpha = 1
  drawLine(context, columns, levels.reserved, palette.faint, scene, height)
}

function drawLine(
  context: CanvasRenderingContext2D,
  columns: Int32Array,
  values: Float64Array,
  color: string,
  { topBytes }: TimelineScene,
  height: number,
): void {
  context.beginPath()
  for (const [pixel, column] of columns.entries())
    if (column >= 0) context.lineTo(AXIS.left + pixel + 0.5, Math.max(AXIS.top, yOf(values[column] as number, height, topBytes)))
  context.strokeStyle = color
  context.setLineDash([4, 3])
  context.stroke()
  context.setLineDash([])
}

function drawMarks(context: CanvasRenderingContext2D, scene: TimelineScene, width: number, height: number): void {
  const { marks, view, palette, moment } = scene
  const bottom = height - AXIS.bottom
  const seen = marks.filter(({ index }) => index + 1 >= view.from && index <= view.to)
  const steps = seen.filter(({ kind }) => kind === 'step')
  const upright = (index: number, top: number, color: string, lineWidth = 1) => {
    const x = Math.min(width - AXIS.right, Math.max(AXIS.left, xOf(index + 0.5, width, view)))
    context.strokeStyle = color
    context.lineWidth = lineWidth
    context.beginPath()
    context.moveTo(x, top)
    context.lineTo(x, bottom)
    context.stroke()
    context.lineWidth = 1
    return x
  }
  if (steps.length <= MOST_STEP_MARKS) for (const { index } of steps) upright(index, bottom - 5, palette.text)
  context.textBaseline = 'bottom'
  let saidAt = Number.NEGATIVE_INFINITY
  for (const { index, kind } of seen) {
    if (kind === 'step') continue
    const color = kind === 'oom' ? palette.critical : palette.text
    const x = upright(index, AXIS.top - 2, color)
    if (Math.abs(x - saidAt) < LABEL_PX) continue
    saidAt = x
    context.fillStyle = color
    context.textAlign = x > width - LABEL_PX ? 'right' : 'left'
    context.fillText(kind === 'oom' ? 'out of memory' : 'peak', x + (x > width - LABEL_PX ? -3 : 3), AXIS.top)
  }
  if (moment !== null && moment + 1 >= view.from && moment <= view.to) upright(moment, AXIS.top, palette.mark, 2)
}

function drawTicks(
  context: CanvasRenderingContext2D,
  { levels, view, palette, labelAt }: TimelineScene,
  width: number,
  height: number,
): void {
  const pixels = plotWidth(width)
  const many = Math.max(2, Math.floor(pixels / TICK_PX))
  context.fillStyle = palette.faint
  context.textBaseline = 'top'
  let said = ''
  for (let tick = 0; tick <= many; tick++) {
    const event = view.from + (tick * (view.to - view.from)) / many
    if (event < levels.from || event > levels.to) continue
    const text = labelAt(Math.floor(event))
    if (text === said) continue
    said = text
    context.textAlign = tick === 0 ? 'left' : tick === many ? 'right' : 'center'
    context.fillText(text, AXIS.left + (tick * pixels) / many, height - AXIS.bottom + 6)
  }
}
