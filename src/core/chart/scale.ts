/** From values to pixels, and where the ticks go. */
import { axisScale, type Unit } from './units.ts'

export interface Tick {
  readonly value: number
  readonly label: string
}

export interface Axis {
  readonly from: number
  readonly to: number
  readonly ticks: readonly Tick[]
}

/** 1, 2 or 5 times a power of ten, not below `rough`. */
export function niceStep(rough: number): number {
  if (!(rough > 0) || !Number.isFinite(rough)) return 1
  const power = 10 ** Math.floor(Math.log10(rough))
  const lead = rough / power
  return (lead <= 1.000001 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power
}

/** An axis that begins and ends on a tick, with about `count` of them. */
export function valueAxis(low: number, high: number, unit: Unit, count: number): Axis {
  const { factor, suffix } = axisScale(unit, Math.max(Math.abs(low), Math.abs(high)))
  const scaledLow = low / factor
  // Below this floating-point neighbors are equal.
  const least = Math.max(Math.abs(scaledLow), 1e-9) * 1e-9
  const scaledHigh = high / factor - scaledLow > least ? high / factor : scaledLow + Math.max(1, Math.abs(scaledLow) * 0.1)
  const rough = (scaledHigh - scaledLow) / Math.max(1, count)
  const step = unit === 'ratio' && rough > 10 && rough <= 25 ? 25 : niceStep(rough)
  const from = Math.floor(scaledLow / step + 1e-9) * step
  const intervals = Math.max(1, Math.ceil((scaledHigh - from) / step - 1e-9))
  const to = from + intervals * step
  const digits = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))
  const ticks = Array.from({ length: intervals + 1 }, (_, index) => {
    const value = from + index * step
    return { value: value * factor, label: labelOf(Number(value.toFixed(digits)), suffix) }
  })
  return { from: from * factor, to: to * factor, ticks }
}

/** Zero needs no unit, except for degrees. */
function labelOf(value: number, suffix: string): string {
  return value === 0 && !suffix.includes('°') ? '0' : `${value}${suffix}`
}

export type Project = (value: number) => number

export function linear(from: number, to: number, start: number, end: number): Project {
  const span = to - from
  return span === 0 ? () => (start + end) / 2 : (value) => start + ((value - from) / span) * (end - start)
}
