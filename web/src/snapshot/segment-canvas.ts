import type { MomentPicture, SegmentPicture } from '../../../src/core/memory/snapshot-picture.ts'
import { type ChartColors, translucent } from '../chart/palette.ts'
import type { Ribbon, RibbonPart } from './ribbon.ts'

export const ROW_PX = 22
const BAR_PX = 16

/** Height that the rows take. */
export function ribbonHeight({ rows }: Ribbon): number {
  return rows * ROW_PX
}

export function drawSegments(
  canvas: HTMLCanvasElement,
  { segments, lines }: MomentPicture,
  ribbon: Ribbon,
  palette: ChartColors,
  colorOf: (line: string) => string,
  selected: number | null,
): void {
  const scale = devicePixelRatio || 1
  const [width, height] = [canvas.clientWidth, ribbonHeight(ribbon)]
  const context = canvas.getContext('2d')
  if (width === 0 || !context) return
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) }
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size)
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.clearRect(0, 0, width, height)
  const colors = lines.map(colorOf)
  for (const part of ribbon.parts) {
    const segment = segments[part.segment] as SegmentPicture
    const top = part.row * ROW_PX + (ROW_PX - BAR_PX) / 2
    context.fillStyle = translucent(palette.pale, 0.25)
    context.fillRect(part.x, top, part.width, BAR_PX)
    drawPieces(context, part, segment, top, colors)
    context.strokeStyle = segment.isPinned ? palette.critical : translucent(palette.faint, 0.6)
    context.lineWidth = segment.isPinned ? 2 : 1
    context.strokeRect(part.x + 0.5, top + 0.5, Math.max(1, part.width - 1), BAR_PX - 1)
    if (part.segment === selected) {
      context.strokeStyle = palette.text
      context.lineWidth = 2
      context.strokeRect(part.x - 1, top - 2, part.width + 2, BAR_PX + 4)
    }
  }
}

function drawPieces(
  context: CanvasRenderingContext2D,
  part: RibbonPart,
  { pieces }: SegmentPicture,
  top: number,
  colors: readonly string[],
): void {
  const perByte = part.width / Math.max(1, part.to - part.from)
  for (let i = 0; i < pieces.length; i += 3) {
    const [offset, bytes, line] = [pieces[i] as number, pieces[i + 1] as number, pieces[i + 2] as number]
    const [from, to] = [Math.max(part.from, offset), Math.min(part.to, offset + bytes)]
    if (to <= from) continue
    context.fillStyle = colors[line] as string
    context.fillRect(part.x + (from - part.from) * perByte, top, Math.max(1, (to - from) * perByte), BAR_PX)
  }
}
