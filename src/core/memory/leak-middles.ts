/**
 * Whether the medians of the blocks show a leak: for memory that requests take and give back, where dips rule the floors and hide the climb.
 * The limits were tuned on seeds 1 to 12 of a prototype of `bench/accuracy/cluster.mjs`; docs/accuracy.md says how each was chosen.
 */
import type { BlockWindow } from './ladder.ts'
import { group, LEAST_RISE, type Leak, largestFall } from './leak-verdict.ts'
import { mannKendall, median, quantile, theilSen } from './statistics.ts'

export const LEAST_MIDDLES = 8
/** A rise that exceeds every fall by this much: noisy memory falls often, so more would hide most leaks. */
export const MIDDLES_OVER_FALL = 1.5
/** Where three of four blocks dip less than this share of capacity, the floors tell more. */
const DIPS = 0.02
/** The rise must be this share of what is free above the usual level. */
export const MIDDLES_OVER_ROOM = 0.4
const TREND_SCORE = 3
/** The rise must be this many standard deviations of what is left beside the line. */
const RISE_OVER_NOISE = 5
/** A single increment may make up at most this share of the rise. */
const LARGEST_INCREMENT = 0.5
/** Slope of the later half against the earlier one; below it the rise is settling. */
const SETTLING = 0.6
/** Blocks whose median is the level now. */
const NEWEST = 6

export function judgeMiddles(window: BlockWindow): Leak | null {
  const { middle } = window
  if (middle.length < LEAST_MIDDLES || !dips(window)) return null
  const trough = lastLowest(middle)
  if (middle.length - trough < LEAST_MIDDLES) return null
  const { position, low, high } = group(window, middle, trough)
  const count = low.length
  if (count < LEAST_MIDDLES) return null
  const [from, to] = [position[0] ?? 0, position[count - 1] ?? 0]
  const slope = theilSen(position, low)
  const rise = slope * (to - from)
  const room = Math.max(0, 1 - median(middle.slice(-NEWEST)))
  const fall = largestFall(middle, trough)
  if (rise < LEAST_RISE || rise < MIDDLES_OVER_ROOM * room || rise <= MIDDLES_OVER_FALL * fall) return null
  const score = mannKendall(low)
  if (score < TREND_SCORE || rise < RISE_OVER_NOISE * noise(position, low, slope)) return null
  if (low.some((value, i) => i > 0 && value - (low[i - 1] ?? value) > LARGEST_INCREMENT * rise)) return null
  const half = count >> 1
  const early = theilSen(position, low, 0, half)
  const late = theilSen(position, low, count - half, count)
  if (late <= 0 || late < SETTLING * early) return null
  if (mannKendall(high) < 2 || theilSen(position, high) < 0.3 * slope) return null
  return { kind: 'middles', from, to, slope, rise, fall, score, steadiness: early > 0 ? late / early : 1, room }
}

function dips({ middle, floor }: BlockWindow): boolean {
  return (
    quantile(
      middle.map((value, i) => value - (floor[i] ?? value)),
      0.75,
    ) >= DIPS
  )
}

function lastLowest(values: readonly number[]): number {
  let lowest = 0
  for (let i = 1; i < values.length; i++) if ((values[i] ?? 0) <= (values[lowest] ?? 0)) lowest = i
  return lowest
}

function noise(position: readonly number[], values: readonly number[], slope: number): number {
  const residuals = values.map((value, i) => value - slope * (position[i] ?? 0))
  const center = median(residuals)
  return Math.sqrt(residuals.reduce((sum, value) => sum + (value - center) ** 2, 0) / residuals.length)
}
