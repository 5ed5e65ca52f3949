/** How many columns of a terminal a text takes, and text from outside made fit for cells. */
import { printable } from '../core/format.ts'

/** One or two columns of a terminal and what stands in them. */
export interface Glyph {
  readonly text: string
  readonly width: 1 | 2
}

/** More than this on one letter is not writing but an attack on the lines above and below. */
const MOST_MARKS = 2
const STAND_IN: Glyph = { text: '·', width: 1 }
const ASCII = /^[\x20-\x7e]*$/
const ZERO_WIDTH = /^[\p{Mn}\p{Me}]$/u
/** Joiners, variation selectors and skin tones: terminals disagree about what they join, so every part stands alone. */
const DROPPED = /^(?:[\p{Cf}\p{Variation_Selector}\u115f\u1160\u3164\uffa0]|\p{Emoji_Modifier})$/u
const NO_GLYPH = /^[\p{Cc}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]$/u
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115e\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]$/u
const FIRST_REGIONAL = 0x1f1e6
const LAST_REGIONAL = 0x1f1ff

const ascii: readonly Glyph[] = Array.from({ length: 128 }, (_, code) =>
  code >= 0x20 && code < 0x7f ? { text: String.fromCharCode(code), width: 1 } : STAND_IN,
)

/** What our own drawings are made of: one column everywhere. */
export function isPlain(code: number): boolean {
  return code < 0x300 || (code >= 0x2190 && code <= 0x2193) || (code >= 0x2500 && code <= 0x25ff) || (code >= 0x2800 && code <= 0x28ff)
}

export function glyphsOf(text: string): readonly Glyph[] {
  const glyphs: Glyph[] = []
  let marks = 0
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    if (code < 0x80) glyphs.push(ascii[code] ?? STAND_IN)
    else if (isPlain(code)) glyphs.push(code < 0xa0 ? STAND_IN : { text: char, width: 1 })
    else if (DROPPED.test(char)) continue
    else if (ZERO_WIDTH.test(char)) {
      const base = glyphs.pop()
      if (base) glyphs.push(marks++ < MOST_MARKS ? { text: base.text + char, width: base.width } : base)
      continue
    } else if (code >= FIRST_REGIONAL && code <= LAST_REGIONAL) glyphs.push(ascii[0x41 + code - FIRST_REGIONAL] ?? STAND_IN)
    else if (NO_GLYPH.test(char)) glyphs.push(STAND_IN)
    else glyphs.push({ text: char, width: WIDE.test(char) ? 2 : 1 })
    marks = 0
  }
  return glyphs
}

export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const glyph of glyphsOf(text)) width += glyph.width
  return width
}

/** At most `width` columns; an ellipsis says that something is missing. */
export function cut(text: string, width: number, ellipsis = '…'): string {
  if (width <= 0) return ''
  const room = width - ellipsis.length
  if (ASCII.test(text)) return text.length <= width ? text : text.slice(0, room) + ellipsis
  if (textWidth(text) <= width) return text
  let result = ''
  let used = 0
  for (const glyph of glyphsOf(text)) {
    if (used + glyph.width > room) break
    result += glyph.text
    used += glyph.width
  }
  return result + ellipsis
}

export function padEnd(text: string, width: number): string {
  const shown = cut(text, width)
  return shown + ' '.repeat(Math.max(0, width - textWidth(shown)))
}

export function padStart(text: string, width: number): string {
  const shown = cut(text, width)
  return ' '.repeat(Math.max(0, width - textWidth(shown))) + shown
}

/** Words broken into lines of at most `width` columns. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of printable(text).split(' ')) {
    let rest = word
    if (line !== '' && textWidth(line) + 1 + textWidth(rest) <= width) {
      line += ` ${rest}`
      continue
    }
    if (line !== '') lines.push(line)
    while (textWidth(rest) > width) {
      const head = cut(rest, width, '')
      if (head === '') break
      lines.push(head)
      rest = rest.slice(head.length)
    }
    line = rest
  }
  if (line !== '' || lines.length === 0) lines.push(line)
  return lines
}
