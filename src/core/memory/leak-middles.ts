/**
 * Whether the usual levels of the blocks show a leak: for memory that requests take and give back, where dips rule the floors and hide the climb.
 * The limits were chosen on seeds 1 to 3 of a prototype of `bench/accuracy/cluster.mjs` and on its seeds 201 to 203; docs/accuracy.md says how.
 */
import { dipsOften, endedFit, fitClimb, gained, held } from './climb.ts'
import { neededGain } from './creep.ts'
import type { BlockWindow } from './ladder.ts'
import type { Leak } from './leak-verdict.ts'
import { mannKendall, median, theilSen } from './statistics.ts'

export const LEAST_MIDDLES = 14
const TREND_SCORE = 2
/** The rise must be this many standard deviations of what is left beside the climb. */
const RISE_OVER_NOISE = 4
/** A single increment may make up at most this share of the rise: levels that are held for long step. */
const LARGEST_INCREMENT = 0.35
/** Slope of the later half against the earlier one; below it the rise is settling. */
const SETTLING = 0.8
/** A climb that ended this share of its length ago must not explain the levels better than this. */
const ENDED_AGO = 0.25
const ENDED_FIT = 0.9
/** Slope of the peaks against that of the levels. */
const PEAKS_OVER_LEVELS = 0.3
/** The lows of a leak rise as the usual level does; half of it, as lows are rare. */
const LOWS_OVER_GAIN = 0.5
const GROUPS = 16

/** `caution`: 1 as tuned; more asks for more evidence. */
export function judgeMiddles(window: BlockWindow, caution = 1): Leak | null {
  const { middle, floor, position } = window
  if (middle.length < LEAST_MIDDLES || !dipsOften(middle.map((value, i) => value - (floor[i] ?? value)))) return null
  const values = held(middle)
  const climb = fitClimb(values)
  if (climb === null) return null
  const n = values.length
  const count = n - climb.start
  const rise = climb.slope * (count - 1)
  const { now, gain } = gained(values, climb)
  const room = Math.max(0, 1 - now)
  // What falls back to its old lows between requests was given back: then a long climb proves no more than a short one.
  const lows = median(floor.slice(-Math.ceil(count / 4))) - median(floor.slice(0, climb.start + 1))
  const lasted = lows < LOWS_OVER_GAIN * gain ? 0 : (position[n - 1] ?? 0) - (position[climb.start] ?? 0)
  if (gain < caution * neededGain(lasted) * room || rise < RISE_OVER_NOISE * Math.sqrt(climb.squares / (n - 2))) return null
  const size = Math.ceil(count / GROUPS)
  const levels: number[] = []
  const peaks: number[] = []
  for (let end = n; end - size >= climb.start; end -= size) {
    levels.unshift(median(values.slice(end - size, end)))
    peaks.unshift(Math.max(...window.peak.slice(end - size, end)))
  }
  const score = mannKendall(levels)
  if (score < TREND_SCORE || levels.some((value, i) => i > 0 && value - (levels[i - 1] ?? value) > LARGEST_INCREMENT * rise)) return null
  const half = count >> 1
  const early = theilSen(position, values, climb.start, climb.start + half)
  const late = theilSen(position, values, n - half, n)
  const steadiness = early > 0 ? late / early : 1
  if (late <= 0 || steadiness < SETTLING || endedFit(values, climb, ENDED_AGO) < caution * ENDED_FIT) return null
  const [from, to] = [position[climb.start] ?? 0, position[n - 1] ?? 0]
  // A pool of fixed size that is used more and more does not leak: its peaks stay.
  if (theilSen([...peaks.keys()], peaks) < PEAKS_OVER_LEVELS * climb.slope * size) return null
  return { kind: 'middles', from, to, slope: rise / (to - from), rise, fall: 0, score, steadiness, room }
}
