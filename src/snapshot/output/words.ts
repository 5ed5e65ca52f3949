/** Pieces of text that the outputs of a snapshot share. */
import { formatBytes, formatMoment, printable } from '../../core/format.ts'
import type { Share } from '../verdict/live-set.ts'

export const WIDTH = 100
export const LABEL_WIDTH = 15

/** `65,775` */
export function count(value: number): string {
  return value.toLocaleString('en-US')
}

/** `1 block`, `2 blocks` */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** `36%`; `<1%` for what is there but less. */
export function percent(ratio: number): string {
  return ratio > 0 && ratio < 0.005 ? '<1%' : `${Math.round(ratio * 100)}%`
}

/** `+64 KiB`, `-3.1 GiB` */
export function signedSize(bytes: number): string {
  return `${bytes < 0 ? '-' : '+'}${formatBytes(Math.abs(bytes))}`
}

/** `6.85 ms`, `12.3 s`, `2 h 10 min` */
export function secondsText(seconds: number): string {
  if (seconds < 0.001) return `${(seconds * 1e6).toPrecision(3)} µs`
  if (seconds < 1) return `${(seconds * 1000).toPrecision(3)} ms`
  if (seconds < 100) return `${seconds.toFixed(1)} s`
  if (seconds < 3600 * 2) return `${Math.round(seconds / 60)} min`
  return seconds < 86_400 * 2 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86_400)} d`
}

/** `event 39,504, 0.614 s after the first, 2026-09-21 14:13:20.614 +00:00` */
export function momentText(index: number, timeUs: number | null, firstUs: number | null, hasClock = true): string {
  if (index < 0) return 'before the first event'
  const after = timeUs === null || firstUs === null ? '' : `, ${((timeUs - firstUs) / 1e6).toFixed(3)} s after the first`
  return `event ${count(index)}${after}${timeUs === null || !hasClock ? '' : `, ${formatMoment(timeUs / 1000, true)}`}`
}

/** From the left, where a path is too long: its end tells more. */
export function fitted(text: string, width: number): string {
  const clean = printable(text)
  return clean.length <= width ? clean : `…${clean.slice(clean.length - width + 1)}`
}

/** Less is not worth a row. */
export const LEAST_RATIO = 0.001

/** Rows of `bytes  share  name`; what is smaller than `minBytes`, or one too many, is summed up in the last row. */
export function shareRows(shares: readonly Share[], most: number, minBytes: number, indent = '  '): string[] {
  const shown = shares.filter(({ bytes, ratio }) => ratio >= LEAST_RATIO && bytes >= minBytes).slice(0, most)
  const rest = shares.filter((share) => share.bytes > 0 && !shown.includes(share))
  const rows = shown.map((share) => row(share, indent))
  if (rest.length > 0) {
    const sum = (pick: (share: Share) => number) => rest.reduce((total, share) => total + pick(share), 0)
    rows.push(
      row(
        {
          name: `${counted(rest.length, 'other')}`,
          bytes: sum(({ bytes }) => bytes),
          blocks: sum(({ blocks }) => blocks),
          ratio: sum(({ ratio }) => ratio),
        },
        indent,
      ),
    )
  }
  return rows
}

function row({ name, bytes, blocks, ratio }: Share, indent: string): string {
  const tail = `  (${counted(blocks, 'block')})`
  const head = `${indent}${formatBytes(bytes).padStart(9)} ${percent(ratio).padStart(4)}  `
  return `${head}${fitted(name, WIDTH - head.length - tail.length)}${tail}`
}

/** `label     text`, with further lines under the first. */
export function labeled(label: string, lines: readonly string[]): string[] {
  return lines.map((line, i) => `${(i === 0 ? label : '').padEnd(LABEL_WIDTH)}${line}`)
}
