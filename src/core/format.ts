/** Numbers and names as people read them; N/A when unknown. */
import type { GpuInfo, Reading } from './model.ts'

export const NOT_AVAILABLE = 'N/A'

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
const GIBIBYTE = 1024 ** 3

/** `140.3 GiB`, `512 MiB`, `2.6 MiB`, `40 KiB`, `700 B`: one decimal from GiB on, and below ten of a smaller unit. */
export function formatBytes(bytes: Reading): string {
  if (bytes === null) return NOT_AVAILABLE
  let size = Math.abs(bytes)
  let unit = 0
  while (unit < BYTE_UNITS.length - 1 && Number(byteFigure(size, unit)) >= 1024) {
    size /= 1024
    unit++
  }
  return `${bytes < 0 ? '-' : ''}${byteFigure(size, unit)} ${BYTE_UNITS[unit]}`
}

function byteFigure(size: number, unit: number): string {
  return unit >= 3 || (unit > 0 && size < 9.95) ? tenths(size).toFixed(1) : String(Math.round(size))
}

/** `57.1/80.0 GiB`, in the unit of the total. */
export function formatUsed(used: Reading, total: Reading): string {
  if (total === null) return formatBytes(used)
  const [unit, name] = total >= GIBIBYTE ? [GIBIBYTE, 'GiB'] : [1024 ** 2, 'MiB']
  const figure = (bytes: number) => tenths(bytes / unit).toFixed(total >= 1000 * GIBIBYTE ? 0 : 1)
  return `${used === null ? NOT_AVAILABLE : figure(used)}/${figure(total)} ${name}`
}

export function formatRate(bytesPerSecond: Reading): string {
  return bytesPerSecond === null ? NOT_AVAILABLE : `${formatBytes(bytesPerSecond)}/s`
}

/** `80%`, `4.2%`: whole from ten on. */
export function formatPercent(ratio: Reading): string {
  if (ratio === null) return NOT_AVAILABLE
  const percent = ratio * 100
  return `${Math.abs(percent) < 9.95 ? tenths(percent) : Math.round(percent)}%`
}

/** `95%` of a whole; never 0% for something. */
export function formatShare(part: number, whole: number): string {
  const text = formatPercent(whole > 0 ? part / whole : 0)
  return text === '0%' && part > 0 ? '<0.1%' : text
}

/** `84 °C`, `300 W`. */
export function formatWhole(value: Reading, unit: string): string {
  return value === null ? NOT_AVAILABLE : `${Math.round(value)} ${unit}`
}

/** `300 W`, `12.3 kW`. */
export function formatWatts(watts: Reading): string {
  return watts !== null && watts >= 10_000 ? `${tenths(watts / 1000).toFixed(1)} kW` : formatWhole(watts, 'W')
}

export function formatMegahertz(hertz: Reading): string {
  return formatWhole(hertz === null ? null : hertz / 1e6, 'MHz')
}

/** `3 GPUs`, `1 GPU`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Four significant digits; NaN and Inf by name. */
export function formatFigure(value: Reading): string {
  if (value === null) return NOT_AVAILABLE
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Inf' : '-Inf'
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 1e9) return String(value)
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace(/\.?0*e\+?/, 'e')
  return String(size >= 1000 ? Math.round(value) : Number(value.toPrecision(4)))
}

/** `2.6 ms`, `1.25 s`, `29 s`, `4 min 30 s`, `12 min`, `2 h 30 min`, `3 d`: below ten of a unit with the next smaller one. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds > 0 && Math.round(milliseconds) < 1000) return formatBelowSecond(milliseconds)
  if (Math.round(seconds * 100) < 1000) return `${Math.round(seconds * 100) / 100} s`
  const [whole, minutes, hours] = [Math.round(seconds), Math.round(seconds / 60), Math.round(seconds / 3600)]
  if (whole < 60) return `${whole} s`
  if (whole < 600) return twoUnits(whole, 60, 'min', 's')
  if (minutes < 60) return `${minutes} min`
  if (minutes < 600) return twoUnits(minutes, 60, 'h', 'min')
  if (hours < 48) return `${hours} h`
  return hours < 240 ? twoUnits(hours, 24, 'd', 'h') : `${Math.round(hours / 24)} d`
}

export function formatSeconds(seconds: Reading): string {
  return seconds === null ? NOT_AVAILABLE : formatDuration(seconds * 1000)
}

/** To the second, for a running time. */
export function formatAge(milliseconds: number): string {
  return formatDuration(Math.floor(milliseconds / 1000) * 1000)
}

function formatBelowSecond(milliseconds: number): string {
  if (Math.round(milliseconds * 1000) < 1000) return `${Math.round(milliseconds * 1000)} µs`
  return `${milliseconds < 9.95 ? tenths(milliseconds) : Math.round(milliseconds)} ms`
}

function twoUnits(count: number, size: number, large: string, small: string): string {
  const rest = count % size
  return `${Math.floor(count / size)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

/** Local time of day, with the date when it is not today's. */
export function formatClock(at: number, now: number): string {
  const date = new Date(at)
  const time = date.toTimeString().slice(0, 8)
  return date.toDateString() === new Date(now).toDateString()
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

/** `2026-03-01 02:10:05 +01:00`: local time with its offset; `unknown` beyond the last possible date. */
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

/** As programs read it. Null where there is none: a forecast may lie beyond the last date there is. */
export function isoTime(at: Reading): string | null {
  return at === null || !(Math.abs(at) <= 8.64e15) ? null : new Date(at).toISOString()
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `NVIDIA H100 80GB HBM3` → `H100 80GB HBM3`: without vendor and brand. */
export function shortModel({ name, vendor }: Pick<GpuInfo, 'name' | 'vendor'>): string {
  if (name === null) return 'unknown GPU'
  const [first = '', ...rest] = name.split(' ')
  return rest.length > 0 && first.toLowerCase() === vendor
    ? rest.join(' ').replace(/^(GeForce|Radeon|Instinct|Data Center GPU) /, '')
    : name
}

/** Untrusted text (process names, commands) may hold escape codes: none may reach a terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\u00b7')
}
