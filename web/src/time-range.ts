/** The time range of a page: the last minutes, moving with the clock, or two fixed moments. */
import { place, setQuery } from './location.ts'

export type TimeRange =
  | { readonly kind: 'last'; readonly name: string; readonly ms: number }
  | { readonly kind: 'fixed'; readonly from: number; readonly to: number }

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

export const RANGES: readonly (TimeRange & { readonly kind: 'last' })[] = [
  { kind: 'last', name: '5m', ms: 5 * MINUTE_MS },
  { kind: 'last', name: '1h', ms: 60 * MINUTE_MS },
  { kind: 'last', name: '24h', ms: DAY_MS },
  { kind: 'last', name: '7d', ms: 7 * DAY_MS },
  { kind: 'last', name: '30d', ms: 30 * DAY_MS },
  { kind: 'last', name: '1y', ms: 365 * DAY_MS },
]

const FIRST: TimeRange = { kind: 'last', name: '5m', ms: 5 * MINUTE_MS }

export function parseRange(query: Readonly<Record<string, string>>): TimeRange {
  const from = Number(query.from)
  const to = Number(query.to)
  if (query.from !== undefined && query.to !== undefined && from > 0 && to > from) return { kind: 'fixed', from, to }
  return RANGES.find(({ name }) => name === query.range) ?? FIRST
}

/** The range of the page at hand; reading it subscribes. */
export function currentRange(): TimeRange {
  return parseRange(place.value.query)
}

export function chooseRange(range: TimeRange): void {
  if (range.kind === 'last') setQuery({ range: range.name, from: null, to: null })
  else setQuery({ range: null, from: String(Math.round(range.from)), to: String(Math.round(range.to)) })
}

let beforeZoom: TimeRange = FIRST
let zoomed: TimeRange | null = null

export function zoomTo(from: number, to: number): void {
  const current = currentRange()
  if (!isZoomed(current)) beforeZoom = current
  zoomed = { kind: 'fixed', from: Math.round(from), to: Math.round(to) }
  chooseRange(zoomed)
}

/** Back to what was shown before the first zoom; of a link that was opened, to the present. */
export function zoomOut(): void {
  chooseRange(isZoomed(currentRange()) ? beforeZoom : FIRST)
}

function isZoomed(range: TimeRange): boolean {
  return range.kind === 'fixed' && zoomed?.kind === 'fixed' && range.from === zoomed.from && range.to === zoomed.to
}

export function boundsOf(range: TimeRange, now: number): { readonly from: number; readonly to: number } {
  return range.kind === 'last' ? { from: now - range.ms, to: now } : { from: range.from, to: range.to }
}
