import { formatDuration } from '../core/format.ts'

const MINUTE_MS = 60_000

/** A time ahead with its interval: `in 29 s (15–42 s)`; within a second digits mean nothing. */
export function ahead(ms: number, earliestMs: number, latestMs: number): string {
  if (ms >= 1000 && latestMs === Number.POSITIVE_INFINITY) return `in ${roughly(ms)} (${roughly(earliestMs)} or later)`
  if (ms >= 1000) return `in ${roughly(ms)} (${between(roughly(earliestMs), roughly(latestMs))})`
  return latestMs < 1000 ? 'within a second' : `within a second, at the latest in ${roughly(latestMs)}`
}

/** One unit is written once: `15–42 s`, `50 s to 2 min`. */
function between(from: string, to: string): string {
  const [figure, unit, ...more] = from.split(' ')
  return more.length === 0 && /^[\d.]+ \w+$/.test(to) && to.endsWith(` ${unit}`) ? `${figure}–${to}` : `${from} to ${to}`
}

/** No forecast is good to the second when it is minutes away. */
function roughly(ms: number): string {
  return formatDuration(ms < 2 * MINUTE_MS ? ms : Math.round(ms / MINUTE_MS) * MINUTE_MS)
}

/** For evidence: a rounded number, or NaN and Infinity by name. */
export function evidenceNumber(value: number): number | string {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : String(value)
}
