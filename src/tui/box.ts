import { BOLD, type Rect, SELECTED, TONE } from './grid.ts'
import type { Painter, Span } from './painter.ts'
import { cut, padEnd } from './text-width.ts'

export function box(painter: Painter, title: string, wantedWidth: number, wantedHeight: number, foot = 'Esc closes'): Rect {
  const { grid, ascii } = painter
  const width = Math.min(grid.width, wantedWidth + 4)
  const height = Math.min(grid.height, wantedHeight + 2)
  const x = Math.floor((grid.width - width) / 2)
  const y = Math.floor((grid.height - height) / 2)
  const [line, bar, corners] = ascii ? ['-', '|', ['+', '+', '+', '+']] : ['─', '│', ['┌', '┐', '└', '┘']]
  grid.fill({ x, y, width, height }, ' ')
  grid.put(x, y, `${corners[0]}${line.repeat(Math.max(0, width - 2))}${corners[1]}`, TONE.accent)
  grid.put(x, y + height - 1, `${corners[2]}${line.repeat(Math.max(0, width - 2))}${corners[3]}`, TONE.accent)
  for (let row = y + 1; row < y + height - 1; row++) {
    grid.put(x, row, bar, TONE.accent)
    grid.put(x + width - 1, row, bar, TONE.accent)
  }
  grid.put(x + 2, y, ` ${cut(title, width - 6)} `, TONE.title | BOLD)
  if (foot.length + 6 < width) grid.put(x + width - foot.length - 4, y + height - 1, ` ${foot} `, TONE.muted)
  return { x: x + 2, y: y + 1, width: width - 4, height: height - 2 }
}

export function menu(painter: Painter, title: string, items: readonly string[], selected: number): void {
  const inner = box(painter, title, 22, items.length, 'Enter')
  const offset = Math.max(0, Math.min(selected - inner.height + 1, items.length - inner.height))
  items.slice(offset, offset + inner.height).forEach((item, index) => {
    const rect = { x: inner.x, y: inner.y + index, width: inner.width, height: 1 }
    painter.grid.put(rect.x, rect.y, padEnd(item, inner.width), TONE.text, inner.width)
    if (offset + index === selected) painter.grid.mark(rect, SELECTED)
    painter.hit(rect, { kind: 'choose', index: offset + index })
  })
}

/** As many lines as fit, from `offset` on. */
export function scrolled(painter: Painter, inner: Rect, lines: readonly (readonly Span[])[], offset: number): void {
  const from = Math.max(0, Math.min(offset, lines.length - inner.height))
  lines.slice(from, from + inner.height).forEach((spans, index) => {
    painter.spans(inner.x, inner.y + index, inner.width, spans, ' ')
  })
  if (lines.length > inner.height)
    painter.grid.put(inner.x + inner.width + 1, inner.y + inner.height - 1, painter.ascii ? 'v' : '▼', TONE.accent)
}
