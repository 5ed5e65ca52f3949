import { ASCII_BLOCK, BLOCK, filledCells } from './graph.ts'
import { BOLD, type Grid, type Rect, type Style, TONE } from './grid.ts'
import type { Panel, Sort } from './screen-data.ts'
import { textWidth } from './text-width.ts'
import type { Theme } from './theme.ts'

export type Action =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'sort'; readonly sort: Sort }
  | { readonly kind: 'process'; readonly key: string }
  | { readonly kind: 'gpu'; readonly id: string; readonly index: number }
  | { readonly kind: 'row'; readonly panel: Panel; readonly index: number }
  | { readonly kind: 'panel'; readonly panel: Panel }
  | { readonly kind: 'choose'; readonly index: number }

export interface Hit extends Rect {
  readonly action: Action
}

export interface Span {
  readonly text: string
  readonly style?: Style
}

/** Less than this of a text says nothing. */
const LEAST_CUT = 8

export class Painter {
  readonly grid: Grid
  readonly theme: Theme
  readonly hits: Hit[] = []

  constructor(grid: Grid, theme: Theme) {
    this.grid = grid
    this.theme = theme
  }

  get ascii(): boolean {
    return this.theme.ascii
  }

  hit(rect: Rect, action: Action): void {
    this.hits.push({ ...rect, action })
  }

  /** Spans one after the other, whole or not at all once room is short; the first is cut instead. Gives the columns taken. */
  spans(x: number, y: number, room: number, spans: readonly Span[], gap = '  '): number {
    let column = x
    spans.forEach(({ text, style = TONE.text }, index) => {
      if (text === '') return
      const lead = column > x ? gap : ''
      const width = textWidth(text) + lead.length
      if (column + width > x + room && (index > 0 || room < LEAST_CUT)) return
      column += this.grid.put(column, y, lead, TONE.text, x + room - column)
      column += this.grid.put(column, y, text, style, x + room - column)
    })
    return column - x
  }

  spansRight(right: number, y: number, room: number, spans: readonly Span[], gap = '  '): number {
    const kept: Span[] = []
    let width = 0
    for (const span of spans) {
      if (span.text === '') continue
      const more = textWidth(span.text) + (kept.length > 0 ? gap.length : 0)
      if (width + more > room) continue
      kept.push(span)
      width += more
    }
    this.spans(right - width, y, width, kept, gap)
    return right - width
  }

  /** `─ title ─────`: begins a panel. */
  rule(x: number, y: number, width: number, title: readonly Span[], isFocused: boolean): number {
    const line = this.ascii ? '-' : '─'
    this.grid.put(x, y, line.repeat(Math.max(0, width)), TONE.faint, width)
    if (width < 6) return 0
    this.grid.put(x + 1, y, ' ', TONE.text)
    const taken = this.spans(
      x + 2,
      y,
      width - 4,
      title.map((span, index) => (index === 0 ? { ...span, style: isFocused ? TONE.accent | BOLD : (span.style ?? TONE.title) } : span)),
    )
    this.grid.put(x + 2 + taken, y, ' ', TONE.text)
    return taken + 3
  }

  /** A bar of `width` cells; null is drawn as unknown, not as empty. */
  bar(x: number, y: number, width: number, ratio: number | null, style: Style, reserved = 0, forecast = 0): void {
    const block = this.ascii ? ASCII_BLOCK : BLOCK
    if (ratio === null) {
      this.grid.put(x, y, (this.ascii ? ' ' : '·').repeat(width), TONE.faint, width)
      return
    }
    const full = filledCells(ratio, width)
    const held = Math.min(width - full, filledCells(reserved, width))
    const coming = Math.min(width - full - held, filledCells(forecast, width))
    this.grid.put(x, y, block.full.repeat(full), style, width)
    this.grid.put(x + full, y, block.forecast.repeat(coming), TONE.warning)
    this.grid.put(x + full + coming, y, block.empty.repeat(width - full - held - coming), TONE.faint)
    this.grid.put(x + width - held, y, block.reserved.repeat(held), TONE.reserved)
  }
}
