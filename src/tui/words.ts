/** Figures and states in few columns. N/A where the device does not report. */
import { formatBytes } from '../core/format.ts'
import { memoryTone, type Tone } from '../core/gpu-words.ts'
import type { GpuSample, Reading, Severity } from '../core/model.ts'
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

const STYLES: Readonly<Record<Tone, Style>> = {
  plain: TONE.text,
  good: TONE.good,
  warning: TONE.warning,
  critical: TONE.critical,
  muted: TONE.muted,
}

export function styleOf(tone: Tone): Style {
  return STYLES[tone]
}

export function memoryStyle(ratio: Reading): Style {
  const tone = memoryTone(ratio)
  return tone === 'plain' ? TONE.memory : styleOf(tone)
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

/** What is wrong with a card as a whole; null when nothing is. */
export function troubleOf(sample: GpuSample): string | null {
  if (sample.state === 'ok') return null
  return `${sample.state.toUpperCase().replace('_', ' ')}${sample.stateReason === null ? '' : `: ${sample.stateReason}`}`
}
