/** Numbers and names as people read them. N/A where the device cannot tell. */
import type { GpuInfo, Reading } from './model.ts'

export const NOT_AVAILABLE = 'N/A'

const GIBIBYTE = 1024 ** 3
const MEBIBYTE = 1024 ** 2

export function formatBytes(bytes: Reading): string {
  if (bytes === null) return NOT_AVAILABLE
  if (bytes >= 100 * GIBIBYTE) return `${Math.round(bytes / GIBIBYTE)} GiB`
  if (bytes >= GIBIBYTE) return `${(bytes / GIBIBYTE).toFixed(1)} GiB`
  return `${Math.round(bytes / MEBIBYTE)} MiB`
}

export function formatPercent(ratio: Reading): string {
  return ratio === null ? NOT_AVAILABLE : `${Math.round(ratio * 100)}%`
}

export function formatWhole(value: Reading, unit: string): string {
  return value === null ? NOT_AVAILABLE : `${Math.round(value)}${unit}`
}

/** `3 s`, `4 min`, `2 h 10 min`, `3 d`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d`
}

/** Local time of day, with the date when it is not today's. */
export function formatClock(at: number, now: number): string {
  const date = new Date(at)
  const time = date.toTimeString().slice(0, 8)
  return date.toDateString() === new Date(now).toDateString()
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

/**
 * `2026-03-01 02:10:05 +01:00`: local time with what it is ahead of UTC, for what is read elsewhere or later. Milliseconds where
 * they are wanted; `unknown` beyond the last date there is.
 */
export function formatMoment(at: number, hasMilliseconds = false): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return 'unknown'
  const ahead = -date.getTimezoneOffset()
  const wall = new Date(at + ahead * 60_000)
  if (Number.isNaN(wall.getTime())) return 'unknown'
  const zone = `${ahead < 0 ? '-' : '+'}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`
  return `${wall
    .toISOString()
    .slice(0, hasMilliseconds ? -1 : -5)
    .replace('T', ' ')} ${zone}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `NVIDIA H100 80GB HBM3` → `H100 80GB HBM3`: the vendor is the least of it, and its brand says nothing beside the model. */
export function shortModel({ name, vendor }: Pick<GpuInfo, 'name' | 'vendor'>): string {
  if (name === null) return 'unknown GPU'
  const [first = '', ...rest] = name.split(' ')
  return rest.length > 0 && first.toLowerCase() === vendor ? rest.join(' ').replace(/^(GeForce|Radeon|Instinct) /, '') : name
}

/** Text from outside (process names, commands) may hold escape codes: none reaches a terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\u00b7')
}
