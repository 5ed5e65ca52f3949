/** From one screen to the next: the shortest way in escape codes, nothing when nothing changed. */
import type { Grid } from './grid.ts'
import { isPlain } from './text-width.ts'
import type { Theme } from './theme.ts'

const ESC = '\u001b['

/** `before` null: whatever is on the terminal is wiped. */
export function difference(before: Grid | null, after: Grid, theme: Theme): string {
  const isSame = before !== null && before.width === after.width && before.height === after.height
  let out = isSame ? '' : `${ESC}0m${ESC}2J`
  let style = -1
  /** Where the cursor is; -1: not known for sure. */
  let cursor = -1
  const { width, chars, styles } = after
  for (let index = 0; index < chars.length; index++) {
    const char = chars[index] ?? ' '
    if (char === '') continue
    const now = styles[index] ?? 0
    if (isSame) {
      if (char === before.chars[index] && now === before.styles[index]) continue
    } else if (char === ' ' && now === 0) continue
    if (cursor !== index) out += `${ESC}${Math.floor(index / width) + 1};${(index % width) + 1}H`
    if (now !== style) {
      out += theme.sgr(now)
      style = now
    }
    out += char
    // Terminals disagree on the width of some characters and on the last column: the cursor is placed again.
    const isSure = char.length === 1 && isPlain(char.charCodeAt(0)) && (index + 1) % width !== 0
    cursor = isSure ? index + 1 : -1
  }
  if (out === '') return ''
  return `${ESC}?2026h${out}${ESC}0m${ESC}?2026l`
}
