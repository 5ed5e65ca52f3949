/** A screen as cells: what is drawn on, compared and written. */
import { glyphsOf } from './text-width.ts'

/** What a color is for; a theme says what it looks like. */
export const TONE = {
  text: 0,
  muted: 1,
  faint: 2,
  title: 3,
  accent: 4,
  good: 5,
  warning: 6,
  critical: 7,
  simulated: 8,
  busy: 9,
  memory: 10,
  reserved: 11,
} as const

/** A tone, and BOLD or SELECTED where wanted. */
export type Style = number
export const BOLD = 32
export const SELECTED = 64
export const TONE_MASK = 31

export interface Rect {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const ASCII_FOR: Readonly<Record<string, string>> = { '°': ' ', '↓': 'v', '↑': '^', '…': '~', '–': '-', '·': '.' }

export class Grid {
  readonly width: number
  readonly height: number
  /** '' is the second half of a wide character. */
  readonly chars: string[]
  readonly styles: Uint8Array

  constructor(width: number, height: number) {
    this.width = Math.max(1, width)
    this.height = Math.max(1, height)
    this.chars = new Array<string>(this.width * this.height).fill(' ')
    this.styles = new Uint8Array(this.width * this.height)
  }

  /** Draws at most `room` columns of one line and gives how many it took. Nothing leaves the grid. */
  put(x: number, y: number, text: string, style: Style = TONE.text, room = this.width - x): number {
    if (y < 0 || y >= this.height || x < 0) return 0
    const end = Math.min(this.width, x + room)
    let column = x
    for (const glyph of glyphsOf(text)) {
      if (column + glyph.width > end) break
      const index = y * this.width + column
      this.#free(index, column)
      this.chars[index] = glyph.text
      this.styles[index] = style
      if (glyph.width === 2) {
        this.#free(index + 1, column + 1)
        this.chars[index + 1] = ''
        this.styles[index + 1] = style
      }
      column += glyph.width
    }
    return column - x
  }

  fill({ x, y, width, height }: Rect, char: string, style: Style = TONE.text): void {
    for (let row = y; row < y + height; row++) this.put(x, row, char.repeat(Math.max(0, width)), style, width)
  }

  /** Adds to the style of what is there: a selected line. */
  mark({ x, y, width, height }: Rect, flag: Style): void {
    for (let row = Math.max(0, y); row < Math.min(this.height, y + height); row++)
      for (let column = Math.max(0, x); column < Math.min(this.width, x + width); column++) {
        const index = row * this.width + column
        this.styles[index] = (this.styles[index] ?? 0) | flag
      }
  }

  /** Every cell in ASCII, in its column: for terminals that know nothing else. */
  toAscii(): void {
    for (let index = 0; index < this.chars.length; index++) {
      const char = this.chars[index] ?? ' '
      if (char === '') this.chars[index] = '?'
      else if (char.length > 1 || char > '~') this.chars[index] = ASCII_FOR[char] ?? '?'
    }
  }

  /** The characters alone, without blanks at the ends of lines. */
  text(): string {
    return this.lines().join('\n')
  }

  lines(): string[] {
    return Array.from({ length: this.height }, (_, row) =>
      this.chars
        .slice(row * this.width, (row + 1) * this.width)
        .join('')
        .trimEnd(),
    )
  }

  /** No half of a wide character is left behind when the other half is drawn over. */
  #free(index: number, column: number): void {
    if (this.chars[index] === '' && column > 0) this.chars[index - 1] = ' '
    if (column + 1 < this.width && this.chars[index + 1] === '') this.chars[index + 1] = ' '
  }
}
