/** Bars and history graphs from characters. A gap (NaN) is drawn as nothing, never as zero. */

/** Dots of one braille cell, from the bottom up, left and right column. */
const LEFT = [0x40, 0x44, 0x46, 0x47] as const
const RIGHT = [0x80, 0xa0, 0xb0, 0xb8] as const
const ASCII_LEVELS = ['_', '.', ':', '|'] as const
const DOTS = 4

/** `values` 0–1, two to a column, the newest at the right. `phase` 1: the newest is alone in its column, so pairs stay together. */
export function graphRows(values: ArrayLike<number>, width: number, height: number, ascii: boolean, phase = 0): string[] {
  const rows: string[] = []
  const slots = width * 2
  const shift = slots - phase - values.length
  const at = (slot: number): number => {
    const value = values[slot - shift]
    return value === undefined ? Number.NaN : value
  }
  for (let row = 0; row < height; row++) {
    const floor = (height - 1 - row) * DOTS
    let line = ''
    for (let column = 0; column < width; column++) {
      const left = dots(at(column * 2), height) - floor
      const right = dots(at(column * 2 + 1), height) - floor
      line += ascii ? asciiCell(left, right) : brailleCell(left, right)
    }
    rows.push(line)
  }
  return rows
}

/** The column of a moment in a graph whose newest value is of `newest`; null: it is not shown. */
export function columnOf(at: number, newest: number, stepMs: number, width: number, phase: number): number | null {
  const back = Math.floor(newest / stepMs) - Math.floor(at / stepMs)
  // What happened after the newest value is at its place.
  const column = Math.floor((width * 2 - phase - 1 - Math.max(0, back)) / 2)
  return column < 0 ? null : column
}

/** How many dots a value reaches; a real zero shows one, to differ from a gap. */
function dots(value: number, height: number): number {
  if (Number.isNaN(value)) return -1e6
  return Math.max(1, Math.round(Math.min(1, Math.max(0, value)) * height * DOTS))
}

function brailleCell(left: number, right: number): string {
  const bits = (left > 0 ? (LEFT[Math.min(DOTS, left) - 1] ?? 0) : 0) | (right > 0 ? (RIGHT[Math.min(DOTS, right) - 1] ?? 0) : 0)
  return bits === 0 ? ' ' : String.fromCharCode(0x2800 | bits)
}

function asciiCell(left: number, right: number): string {
  const level = Math.min(DOTS, Math.max(left, right))
  return level <= 0 ? ' ' : (ASCII_LEVELS[level - 1] ?? '|')
}

/** One row, scaled between the least and the most: for figures without a natural top, such as a loss. */
export function sparkline(values: readonly number[], width: number, ascii: boolean): string {
  const shown = values.slice(-width * 2)
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  for (const value of shown)
    if (Number.isFinite(value)) {
      least = Math.min(least, value)
      most = Math.max(most, value)
    }
  const span = most - least
  const scaled = shown.map((value) => (Number.isFinite(value) ? (span > 0 ? (value - least) / span : 0.5) : Number.NaN))
  return graphRows(scaled, width, 1, ascii)[0] ?? ''
}

export const BLOCK = { full: '█', half: '▌', empty: '░', reserved: '▒', forecast: '▓' } as const
export const ASCII_BLOCK = { full: '#', half: '#', empty: '.', reserved: '%', forecast: '+' } as const

/** How many whole cells of `width` a ratio fills; something that is not nothing shows at least one. */
export function filledCells(ratio: number, width: number): number {
  if (!(ratio > 0)) return 0
  return Math.min(width, Math.max(1, Math.round(ratio * width)))
}
