import { formatDuration } from '../core/format.ts'

const MINUTE_MS = 60_000

/** When something will be so, with its interval: `in 12 s (9.2 s to 16 s)`; what is nearer than a second has no digits worth telling. */
export function ahead(ms: number, earliestMs: number, latestMs: number): string {
  if (ms >= 1000 && latestMs === Number.POSITIVE_INFINITY) return `in ${roughly(ms)} (${roughly(earliestMs)} or later)`
  if (ms >= 1000) return `in ${roughly(ms)} (${roughly(earliestMs)} to ${roughly(latestMs)})`
  return latestMs < 1000 ? 'within a second' : `within a second, at the latest in ${roughly(latestMs)}`
}

/** No forecast is good to the second when it is minutes away. */
function roughly(ms: number): string {
  return formatDuration(ms < 2 * MINUTE_MS ? ms : Math.round(ms / MINUTE_MS) * MINUTE_MS)
}

/** For evidence: a finite number rounded to what matters, or the name of what it is. */
export function evidenceNumber(value: number): number | string {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : String(value)
}
