/** When memory will be full: a line through the lows of one window, and the worst excursion above it, against capacity 1. */
import type { BlockWindow } from './ladder.ts'
import { fitLine, quantile } from './statistics.ts'
import type { Turn } from './swings.ts'

/** The window must be at least this share of the predicted time: a short rise cannot predict a far end. */
export const WINDOW_OVER_AHEAD = 0.35
/** Relative half width of the interval: √((errors × error ÷ slope)² + width²). */
const ERRORS = 4
const WIDTH = 0.24

export interface Forecast {
  /** Where on the axis memory will be full, with a 90% interval; `latest` may be Infinity. */
  readonly fullAt: number
  readonly earliest: number
  readonly latest: number
  /** Share of capacity per axis unit. */
  readonly slope: number
  /** Length of the window behind it. */
  readonly span: number
  /** Share of capacity that is left above the worst recent peak. */
  readonly room: number
  readonly level: number
  /** Relative half width of the interval. */
  readonly spread: number
  /** How deep the series usually dips below its line; 0 where it follows its lows. */
  readonly dip: number
}

const GROUPS = 16
/** A fall of this share of the rise, within this many window lengths, shows that the series swings and will fall again. */
export const FALL_OVER_RISE = 0.5
const FALLS_WITHIN = 4
const FULL = 0.98
const RIPPLE = 1
/** Slope ÷ its error; below it there is no trend. */
const TREND = 4
/** A single increment may make up at most this share of the rise. */
const LARGEST_INCREMENT = 0.6
/** The rise must be worth this many equal increments: weights, a first batch and a larger one are a staircase of three. */
const INCREMENTS = 3
/** Slope of the later half against the earlier one; below it the rise is settling. */
const SETTLING = 0.4

/** Forecast from the newest `blocks` of a window; null without a trustworthy trend. `slack`: uncertainty of capacity; `caution`: 1 as tuned, more asks for more evidence. */
export function forecastBlocks(window: BlockWindow, blocks: number, blockLength: number, slack: number, caution = 1): Forecast | null {
  const values = window.floor
  const n = values.length
  if (n < blocks) return null
  const position: number[] = []
  const low: number[] = []
  const groups = Math.min(GROUPS, blocks)
  for (let group = 0; group < groups; group++) {
    const from = Math.floor(n - blocks + (group * blocks) / groups)
    const to = Math.floor(n - blocks + ((group + 1) * blocks) / groups)
    let lowest = Number.POSITIVE_INFINITY
    let center = 0
    for (let i = from; i < to; i++) {
      lowest = Math.min(lowest, values[i] ?? lowest)
      center += (window.position[i] ?? 0) / (to - from)
    }
    position.push(center)
    low.push(lowest)
  }
  const end = (position.at(-1) ?? 0) + blockLength / 2
  const line = fitLine(
    position.map((one) => one - end),
    low,
  )
  if (line === null || line.slope <= 0) return null
  const span = end - (position[0] ?? 0)
  const error = line.slopeError + (2e-6 * groups) / span
  if (line.slope < caution * TREND * error || !climbsEvenly(low, line.slope * span)) return null
  if (largestFall(values, Math.max(0, n - FALLS_WITHIN * blocks), n) > FALL_OVER_RISE * line.slope * span) return null
  const excursions: number[] = []
  for (let i = n - blocks; i < n; i++)
    if (!survived(window, i)) excursions.push((window.peak[i] ?? 0) - line.intercept - line.slope * ((window.position[i] ?? 0) - end))
  let worst = Math.max(0, ...excursions)
  for (let i = 2; i < n - blocks; i++)
    if (!survived(window, i)) worst = Math.max(worst, excursion(window, i) - 2 * line.slope * blockLength)
  const usual = Math.max(0, quantile(excursions, 0.75))
  return ahead({ now: end, level: line.intercept, slope: line.slope, error, worst, usual, span, slack })
}

/** Being full a while ago did no harm: that memory could be freed, so it does not show what will be needed. */
export function survived(window: BlockWindow, at: number): boolean {
  return at < window.peak.length - 2 && (window.peak[at] ?? 0) > FULL
}

/** Height of a peak above both sides, so that a step up or down is none. */
function excursion(window: BlockWindow, at: number): number {
  const floor = (i: number) => window.floor[i] ?? Number.POSITIVE_INFINITY
  const before = Math.min(floor(at - 1), floor(at - 2))
  const after = Math.min(floor(at + 1), floor(at + 2))
  return (window.peak[at] ?? 0) - Math.max(before, after)
}

function deepestFall(highs: readonly Turn[], lows: readonly Turn[], since: number): number {
  let deepest = 0
  for (const high of highs) {
    if (high.position < since) continue
    const low = lows.find((turn) => turn.position > high.position)
    if (low !== undefined) deepest = Math.max(deepest, high.value - low.value)
  }
  return deepest
}

function largestFall(values: readonly number[], from: number, to: number): number {
  let top = Number.NEGATIVE_INFINITY
  let fall = 0
  for (let i = from; i < to; i++) {
    const value = values[i] ?? 0
    if (value > top) top = value
    else if (top - value > fall) fall = top - value
  }
  return fall
}

function climbsEvenly(low: readonly number[], rise: number): boolean {
  let largest = 0
  let [sum, squares] = [0, 0]
  for (let i = 1; i < low.length; i++) {
    const increment = Math.max(0, (low[i] ?? 0) - (low[i - 1] ?? 0))
    largest = Math.max(largest, increment)
    sum += increment
    squares += increment * increment
  }
  if (largest > LARGEST_INCREMENT * rise || sum * sum < INCREMENTS * squares) return false
  const half = low.length >> 1
  const early = ((low[half] ?? 0) - (low[0] ?? 0)) / half
  const late = ((low.at(-1) ?? 0) - (low[half] ?? 0)) / (low.length - 1 - half)
  return late >= SETTLING * early
}

/** Forecast from the highs of a swinging series: the envelope itself is the line. */
export function forecastHighs(highs: readonly Turn[], lows: readonly Turn[], now: number, slack: number): Forecast | null {
  const recent = highs.slice(-8)
  if (recent.length < 4) return null
  const line = fitLine(
    recent.map((turn) => turn.position - now),
    recent.map((turn) => turn.value),
  )
  const first = recent[0]
  const last = recent.at(-1)
  if (line === null || first === undefined || last === undefined || line.slope <= 0) return null
  const span = now - first.position
  const error = line.slopeError + 2e-6 / span
  const gap = (last.position - first.position) / (recent.length - 1)
  const values = recent.map((turn) => turn.value)
  if (now - last.position > 2 * gap || line.slope < TREND * error) return null
  if (!climbsEvenly(values, last.value - first.value)) return null
  // Ripples on one large swing have highs, too: falls much larger than the climb show the swing.
  const rise = line.slope * (last.position - first.position)
  if (deepestFall(highs, lows, first.position - FALLS_WITHIN * span) > RIPPLE * rise) return null
  return ahead({ now, level: line.intercept, slope: line.slope, error, worst: 0, usual: 0, span, slack })
}

interface Trend {
  readonly now: number
  /** Value of the line now. */
  readonly level: number
  readonly slope: number
  readonly error: number
  /** Height above the line of the worst and of the usual excursion. */
  readonly worst: number
  readonly usual: number
  readonly span: number
  readonly slack: number
}

function ahead(trend: Trend): Forecast | null {
  const { now, level, slope, worst, span, slack } = trend
  const room = Math.max(0, 1 - level - worst)
  const time = room / slope
  if (span < WINDOW_OVER_AHEAD * time) return null
  const spread = Math.sqrt(((ERRORS * trend.error) / slope) ** 2 + WIDTH ** 2)
  const least = Math.max(0, 1 - level - 1.1 * worst - slack)
  const most = Math.max(room, 1 - level - trend.usual) + slack
  return {
    fullAt: now + time,
    earliest: now + least / (slope * (1 + spread)),
    latest: spread < 0.95 ? now + most / (slope * (1 - spread)) : Number.POSITIVE_INFINITY,
    slope,
    span,
    room,
    level,
    spread,
    dip: 0,
  }
}
