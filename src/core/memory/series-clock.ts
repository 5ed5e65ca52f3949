/** Keeps a series in order: late samples are left out, a clock that was set back starts it anew. */

const LATE_MS = 5000

export type Order = 'next' | 'late' | 'restart'

/** `lastAt` is NaN before the first sample. */
export function orderOf(at: number, lastAt: number): Order {
  if (Number.isNaN(lastAt) || at > lastAt) return 'next'
  return lastAt - at <= LATE_MS ? 'late' : 'restart'
}
