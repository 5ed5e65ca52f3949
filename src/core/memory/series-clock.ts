/** Keeps a series in order: late samples are dropped, a clock that was set back restarts it. */
const LATE_MS = 5000

export type Order = 'next' | 'late' | 'restart'

/** `lastAt` is NaN before the first sample. */
export function orderOf(at: number, lastAt: number): Order {
  if (Number.isNaN(lastAt) || at > lastAt) return 'next'
  return lastAt - at <= LATE_MS ? 'late' : 'restart'
}
