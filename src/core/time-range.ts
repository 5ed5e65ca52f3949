/** `from` and `to` of a request. */
import type { Reply, RouteContext } from './route.ts'
import { parseTime, TIME_HINT } from './time-expression.ts'

export interface TimeRange {
  readonly from: number
  readonly to: number
}

interface Asked {
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** `defaultMs`: how long before `to` it begins without `from`; Infinity for everything. */
export function chooseRange({ query: asked, refuse }: RouteContext<Asked>, now: number, defaultMs: number): TimeRange | Reply {
  const to = parseTime(asked.to ?? 'now', now)
  if (typeof to === 'string') return refuse('invalid_time', `to: ${to}`, TIME_HINT)
  const from = asked.from === undefined ? to - defaultMs : parseTime(asked.from, now)
  if (typeof from === 'string') return refuse('invalid_time', `from: ${from}`, TIME_HINT)
  if (from < to) return { from, to }
  const message = `from (${iso(from)}) must be before to (${iso(to)}).`
  return refuse('invalid_range', message, 'Swap them, or leave out "to" to mean now.')
}

function iso(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms)
}
