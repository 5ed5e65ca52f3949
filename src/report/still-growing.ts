/** Whether a series is still rising at its end: its lows climb from part to part, up to the last one. */
import type { BoundedSeries } from './bounded-series.ts'

const PARTS = 8

/** `leastBytes`: what it must have risen by from the second quarter to the last. */
export function isStillGrowing(series: BoundedSeries, leastBytes: number): boolean {
  const { at, min } = series.columns()
  const first = at[0] ?? 0
  const span = (at.at(-1) ?? 0) - first
  if (span <= 0) return false
  const lows = new Array<number>(PARTS).fill(Number.POSITIVE_INFINITY)
  min.forEach((value, index) => {
    const part = Math.min(PARTS - 1, Math.floor((((at[index] ?? 0) - first) / span) * PARTS))
    if (value !== null) lows[part] = Math.min(lows[part] ?? value, value)
  })
  const low = (from: number) => Math.min(lows[from] ?? 0, lows[from + 1] ?? 0)
  const [second, third, last] = [low(2), low(4), low(6)]
  const isClimbing = last - second >= leastBytes && last - third >= leastBytes / 4 && third - second >= leastBytes / 4
  // A rise that has come to rest in the last quarter is over.
  return isClimbing && (lows[7] ?? 0) - (lows[6] ?? 0) >= leastBytes / 16
}
