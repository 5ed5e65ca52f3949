/** Figures and states in as few columns as people can still read. N/A where the device cannot tell. */
import { NOT_AVAILABLE } from '../core/format.ts'
import type { GpuInfo, GpuSample, Reading, Severity } from '../core/model.ts'
import { type Style, TONE } from './grid.ts'

const KIBI = 1024

/** `57.1G`, `812M`; six columns at most. */
export function shortBytes(bytes: Reading): string {
  if (bytes === null) return NOT_AVAILABLE
  const gibibytes = bytes / KIBI ** 3
  if (gibibytes >= 1000) return `${(gibibytes / KIBI).toFixed(1)}T`
  if (gibibytes >= 99.95) return `${Math.round(gibibytes)}G`
  if (gibibytes >= 1) return `${gibibytes.toFixed(1)}G`
  return `${Math.round(bytes / KIBI ** 2)}M`
}

/** `57.1/80.0 GiB`, in the unit of the total. */
export function usedOf(used: Reading, total: Reading): string {
  if (total === null) return used === null ? NOT_AVAILABLE : shortBytes(used)
  const unit = total >= KIBI ** 3 ? KIBI ** 3 : KIBI ** 2
  const digits = total >= 1000 * KIBI ** 3 ? 0 : 1
  const shown = used === null ? NOT_AVAILABLE : (used / unit).toFixed(digits)
  return `${shown}/${(total / unit).toFixed(digits)} ${unit === KIBI ** 2 ? 'MiB' : 'GiB'}`
}

export function percent(ratio: Reading): string {
  return ratio === null ? NOT_AVAILABLE : `${Math.round(ratio * 100)}%`
}

/** `4s`, `12m`, `2h10`, `3d04h` */
export function shortDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${two(seconds % 60)}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours}h${two(minutes % 60)}`
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** Three or four significant digits; NaN and Infinity by name, because that is the news. */
export function figure(value: Reading): string {
  if (value === null) return NOT_AVAILABLE
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Inf' : '-Inf'
  const size = Math.abs(value)
  if (value === 0) return '0'
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace('e+', 'e')
  return String(Number(value.toPrecision(4)))
}

/** Nearest to its own limit first: what the card says counts, a common figure only where it says nothing. */
export function temperatureTone(celsius: Reading, info: GpuInfo): Style {
  if (celsius === null) return TONE.muted
  const limit = info.temperatureSlowdownCelsius ?? info.temperatureMaxCelsius ?? 90
  return celsius >= limit - 2 ? TONE.critical : celsius >= limit - 10 ? TONE.warning : TONE.text
}

export function memoryTone(ratio: Reading): Style {
  if (ratio === null) return TONE.muted
  return ratio >= 0.97 ? TONE.critical : ratio >= 0.9 ? TONE.warning : TONE.memory
}

/** What holds at this moment, where the card tells it apart from what was set. */
export function powerCap(info: GpuInfo): Reading {
  return info.powerLimitEnforcedWatts ?? info.powerLimitWatts
}

/** Above its cap for real is news; at it is what a cap is for. */
export function powerTone(watts: Reading, info: GpuInfo): Style {
  const cap = powerCap(info)
  if (watts === null || cap === null) return watts === null ? TONE.muted : TONE.text
  return watts > cap * 1.05 ? TONE.warning : TONE.text
}

/** How a card is shared, where it is not shared by everybody. */
export function computeModeWords(mode: Reading): string {
  return mode === 1 ? 'one thread only' : mode === 2 ? 'compute prohibited' : mode === 3 ? 'one process only' : ''
}

export function severityTone(severity: Severity): Style {
  return severity === 'critical' ? TONE.critical : severity === 'warning' ? TONE.warning : TONE.good
}

/** Says the same without colour. */
export function severitySign(severity: Severity): string {
  return severity === 'critical' ? '!!' : severity === 'warning' ? '! ' : 'i '
}

interface Reason {
  readonly bit: number
  readonly words: string
  readonly tone: Style
}

const REASONS: readonly Reason[] = [
  { bit: 0x40, words: 'too hot (hw)', tone: TONE.critical },
  { bit: 0x80, words: 'power brake', tone: TONE.critical },
  { bit: 0x8, words: 'hw slowdown', tone: TONE.critical },
  { bit: 0x20, words: 'too hot', tone: TONE.warning },
  { bit: 0x4, words: 'power cap', tone: TONE.muted },
  { bit: 0x10, words: 'sync boost', tone: TONE.muted },
  { bit: 0x2, words: 'app clocks', tone: TONE.muted },
  { bit: 0x100, words: 'display', tone: TONE.muted },
  { bit: 0x1, words: 'idle', tone: TONE.muted },
]

/** Why clocks are where they are, worst first. */
export function throttleReasons(mask: Reading): readonly Reason[] {
  return mask === null ? [] : REASONS.filter((reason) => (mask & reason.bit) !== 0)
}

/** What is wrong with a card as a whole; null when nothing is. */
export function troubleOf(sample: GpuSample): string | null {
  if (sample.state === 'ok') return null
  return `${sample.state.toUpperCase().replace('_', ' ')}${sample.stateReason === null ? '' : `: ${sample.stateReason}`}`
}
