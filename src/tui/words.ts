/** Figures and states in few columns. N/A where the device does not report. */
import { formatBytes } from '../core/format.ts'
import type { GpuInfo, GpuSample, Reading, Severity } from '../core/model.ts'
import { type Style, TONE } from './grid.ts'

/** `57.1G`, `812M`: for columns; six of them at most, below a thousand GiB. */
export function shortBytes(bytes: Reading): string {
  return formatBytes(bytes).replace(/ (?:(.)iB|B)$/, (_, unit?: string) => unit ?? 'B')
}

/** `4s`, `12m05`, `2h10`, `3d04h`: for columns. */
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

/** The enforced limit where the card reports it, else the configured one. */
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

export function throttleReasons(mask: Reading): readonly Reason[] {
  return mask === null ? [] : REASONS.filter((reason) => (mask & reason.bit) !== 0)
}

export function troubleOf(sample: GpuSample): string | null {
  if (sample.state === 'ok') return null
  return `${sample.state.toUpperCase().replace('_', ' ')}${sample.stateReason === null ? '' : `: ${sample.stateReason}`}`
}
