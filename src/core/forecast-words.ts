/** Words for a time ahead, and how they read later: a countdown counts down, wherever its message is shown. */
import { formatDuration } from './format.ts'
import type { Finding } from './model.ts'

const MINUTE_MS = 60_000
/** What ahead() writes. */
const AHEAD = /\b(?:in \d[\d.]* \w+(?: \d+ \w+)? \([^)]*\)|within a second(?:, at the latest in \d[\w. ]*\w)?)/
const OVERDUE = 'any moment'
/** What findings that last say of how long they have lasted. */
const LASTING = /\b(no step|in use|been idle) for \d[\d.]* \w+(?: \d+ \w+)?/

/** A time ahead with its interval: `in 29 s (15–42 s)`; within a second digits mean nothing. */
export function ahead(ms: number, earliestMs: number, latestMs: number): string {
  if (ms >= 1000 && latestMs === Number.POSITIVE_INFINITY) return `in ${roughly(ms)} (${roughly(earliestMs)} or later)`
  if (ms >= 1000) return `in ${roughly(ms)} (${between(roughly(earliestMs), roughly(latestMs))})`
  return latestMs < 1000 ? 'within a second' : `within a second, at the latest in ${roughly(latestMs)}`
}

/** The message of a finding as it reads at `now`: the time that is left, or has passed, not that of the moment when it was said. */
export function messageAt(finding: Finding, now: number): string {
  const { message, state, at, since, predictedAt, predictedEarliestAt, predictedLatestAt, evidence } = finding
  if (state !== 'active' || now - at < 1000) return message
  const left = (when: number) => Math.max(0, when - now)
  if (predictedAt !== null) {
    const [earliest, latest] = [predictedEarliestAt ?? predictedAt, predictedLatestAt ?? predictedAt]
    return message.replace(AHEAD, latest <= now ? OVERDUE : ahead(left(predictedAt), left(earliest), left(latest)))
  }
  const { fullAt } = evidence
  if (typeof fullAt !== 'number') return message.replace(LASTING, (_, what: string) => `${what} for ${formatDuration(now - since)}`)
  const { earliestMs, fullMs, latestMs } = fullSpan(fullAt - at)
  const words = at + latestMs <= now ? OVERDUE : ahead(left(at + fullMs), left(at + earliestMs), left(at + latestMs))
  return message.replace(AHEAD, words)
}

/** Of a finding that is over: what was wrong; of a forecast, first what became of it. */
export function lastWords(finding: Finding, end: Finding | null): string {
  const isForecast = finding.predictedAt !== null && end !== null && end !== finding
  return isForecast ? `${end.message} The forecast was: ${finding.message}` : finding.message
}

/** How far off the time may be at which a leak fills the memory. */
export function fullSpan(fullMs: number): { readonly earliestMs: number; readonly fullMs: number; readonly latestMs: number } {
  return { earliestMs: 0.6 * fullMs, fullMs, latestMs: 1.8 * fullMs }
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
