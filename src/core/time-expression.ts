/** Times as people write them in a query: epoch milliseconds, ISO 8601, `now`, or relative like `-5m`. */
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const RELATIVE = /^-(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)$/
const EPOCH = /^\d{1,16}(?:\.\d{1,6})?$/
const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s?(Z|[+-]?\d\d:?\d\d)?)?$/i
/** Before March 1973 in milliseconds, but after 1970 in seconds: the wrong unit, not an old GPU. */
const SMALLEST_EPOCH_MS = 1e11

export const TIME_HINT =
  'Give epoch milliseconds (1760000000000), ISO 8601 (2026-01-31T12:00:00Z), now, or a relative time such as -90s, -5m, -1h, -2d.'

/** Epoch milliseconds, or a sentence that says what is wrong. */
export function parseTime(text: string, now: number): number | string {
  if (text === 'now') return now
  const relative = RELATIVE.exec(text)
  if (relative) {
    const [, amount = '', unit = ''] = relative
    return now - Number(amount) * (UNIT_MS[unit] ?? Number.NaN)
  }
  if (EPOCH.test(text)) {
    const value = Number(text)
    if (value > 0 && value < SMALLEST_EPOCH_MS) return `"${text}" looks like epoch seconds; expected epoch milliseconds.`
    return value
  }
  const iso = ISO.exec(text)
  if (iso) {
    const [, date = '', time = '00:00', zone = 'Z'] = iso
    // A plus sign in a query arrives as a space: "…T12:00 02:00" was sent as "…T12:00+02:00".
    const offset = /^\d/.test(zone) ? `+${zone}` : zone.toUpperCase()
    const value = Date.parse(`${date}T${time}${offset}`)
    if (Number.isFinite(value)) return value
  }
  return `"${text.slice(0, 60)}" is not a time.`
}
