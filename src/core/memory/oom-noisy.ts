/** When memory that requests take and give back will be full: along its usual levels, to where an excursion like those so far meets the limit. */
import { dipsOften, endedFit, fitClimb, gained, held, slopeError } from './climb.ts'
import type { Creeping } from './creep.ts'
import type { BlockWindow } from './ladder.ts'
import { type Forecast, survived, WINDOW_OVER_AHEAD } from './oom-forecast.ts'
import { median, quantile } from './statistics.ts'

/** Slope ÷ its error; gain over what was usual and largest increment as shares of the rise; the rest as in `leak-middles.ts` and `oom-forecast.ts`. */
const NOISY = {
  trend: 2.5,
  gain: 0.3,
  largestIncrement: 0.8,
  endedAgo: 0.33,
  endedFit: 0.95,
  errors: 2,
  width: 0.2,
  evenness: 0.8,
  newest: 0.5,
  leastLevels: 4,
} as const
/** How often the limit would have been met by then (1 − e^−h of such futures have ended): for the forecast early, as a late one helps nobody. */
const HAZARD = { earliest: 0.01, expected: 0.15, latest: 2.7 } as const

/** How far memory rose above its usual level, largest first, once in each stretch of time. */
export interface Excursions {
  readonly heights: readonly number[]
  readonly each: number
}

export function excursionsOf(window: BlockWindow, blockLength: number): Excursions {
  const usual = held(window.middle)
  const heights = window.peak.map((value, i) => (survived(window, i) ? 0 : Math.max(0, value - (usual[i] ?? value))))
  return { heights: heights.sort((a, b) => b - a), each: blockLength }
}

/** `past` is asked for only where there is a climb; `caution`: 1 as tuned, more asks for more evidence. */
export function forecastNoisy(
  window: BlockWindow,
  blockLength: number,
  slack: number,
  past: () => Excursions,
  caution = 1,
): Forecast | null {
  const { middle, floor } = window
  const dips = middle.map((value, i) => value - (floor[i] ?? value))
  if (!dipsOften(dips)) return null
  const values = held(middle)
  const climb = fitClimb(values)
  if (climb === null) return null
  const n = values.length
  const rise = climb.slope * (n - 1 - climb.start)
  const error = slopeError(values, climb)
  if (climb.slope < caution * NOISY.trend * error || gained(values, climb).gain < NOISY.gain * rise) return null
  for (let i = climb.start + 1; i < n; i++) if ((values[i] ?? 0) - (values[i - 1] ?? 0) > NOISY.largestIncrement * rise) return null
  const span = (n - 1 - climb.start) * blockLength
  const now = (window.position[n - 1] ?? 0) + blockLength / 2
  const spread = Math.sqrt(((NOISY.errors * error) / climb.slope) ** 2 + NOISY.width ** 2)
  const rising = { now, level: climb.level + rise, slope: climb.slope / blockLength, span, spread, dips, slack }
  const found = alongLevel(rising, past(), caution)
  return found === null || endedFit(values, climb, NOISY.endedAgo) < caution * NOISY.endedFit ? null : found
}

/** Memory that grows while it is held shows its slope at once. The usual level of the newest blocks is carried on with it. */
export function forecastCreep(
  creep: Creeping | null,
  window: BlockWindow,
  now: number,
  slack: number,
  past: () => Excursions,
  caution = 1,
): Forecast | null {
  if (creep === null || creep.steadiness < NOISY.evenness) return null
  const { slope, from } = creep
  const since = Math.max(from, now - NOISY.newest * (now - from))
  const levels = window.middle
    .map((value, i) => value + slope * (now - (window.position[i] ?? now)))
    .filter((_, i) => (window.position[i] ?? 0) >= since)
  if (levels.length < NOISY.leastLevels) return null
  const dips = window.middle.map((value, i) => value - (window.floor[i] ?? value))
  return alongLevel({ now, level: median(levels), slope, span: now - from, spread: NOISY.width, dips, slack }, past(), caution)
}

interface Rising {
  readonly now: number
  /** Usual level now. */
  readonly level: number
  readonly slope: number
  readonly span: number
  readonly spread: number
  readonly dips: readonly number[]
  readonly slack: number
}

function alongLevel({ now, level, slope, span, spread, dips, slack }: Rising, past: Excursions, caution: number): Forecast | null {
  const { heights, each } = past
  const meets = (room: number, pace: number, hazard: number) => meetsAfter(heights, room, pace, hazard * heights.length * each)
  const ahead = meets(1 - level, slope, caution * HAZARD.expected)
  if (span < WINDOW_OVER_AHEAD * ahead) return null
  return {
    fullAt: now + ahead,
    earliest: now + meets(1 - level - slack, slope * (1 + spread), HAZARD.earliest),
    latest: spread < 0.95 ? now + meets(1 - level + slack, slope * (1 - spread), HAZARD.latest) : Number.POSITIVE_INFINITY,
    slope,
    span,
    room: Math.max(0, 1 - level - (heights[0] ?? 0)),
    level,
    spread,
    dip: quantile(dips, 0.9),
  }
}

/** After what time the excursions (largest first) over a level that rises will have spent `needed` time above the limit, all together. */
function meetsAfter(heights: readonly number[], room: number, slope: number, needed: number): number {
  const from = (i: number) => Math.max(0, (room - (heights[i] ?? Number.NEGATIVE_INFINITY)) / slope)
  let sum = 0
  for (let i = 0; i < heights.length; i++) {
    sum += from(i)
    const time = (needed + sum) / (i + 1)
    if (time <= from(i + 1)) return time
  }
  return Number.POSITIVE_INFINITY
}
