/** A level that turns into a straight climb, fitted to the usual levels of blocks: where it begins, how steep it is, and whether it goes on. */
import { median, quantile } from './statistics.ts'

/** Fewer blocks before the climb do not show a level, fewer in it no slope. */
const BEFORE = 6
const LEAST_CLIMB = 8
/** A climb that may have begun later than LEAST_CLIMB blocks ago belongs to a finer level. */
const LATEST_START = 4
/** What was usual before the climb: nine of ten blocks were below. */
const USUAL_TOP = 0.9
/** Where three of four blocks dip less than this share of capacity, the floors tell more. */
const DIPS = 0.02

export interface Climb {
  /** Number of the block where it begins. */
  readonly start: number
  /** Level before it, and growth from block to block. */
  readonly level: number
  readonly slope: number
  /** Sum of the squared residuals. */
  readonly squares: number
}

/** Values without dips of up to two blocks: memory that is taken again at once was not given back. */
export function held(values: readonly number[]): number[] {
  return nearby(nearby(values, Math.max), Math.min)
}

function nearby(values: readonly number[], of: (a: number, b: number, c: number) => number): number[] {
  return values.map((value, i) => of(values[i - 1] ?? value, value, values[i + 1] ?? value))
}

/** Whether memory falls so often that its floors hide what is held. */
export function dipsOften(dips: readonly number[]): boolean {
  return quantile(dips, 0.75) >= DIPS
}

/** The climb that lasts until now and explains the values best; null where there is none. */
export function fitClimb(values: readonly number[]): Climb | null {
  let best: Climb | null = null
  for (let start = BEFORE - 1; start <= values.length - LATEST_START; start++) {
    const one = fitRamp(values, start, values.length - 1)
    if (best === null || one.squares < best.squares) best = one
  }
  return best !== null && best.slope > 0 && values.length - best.start >= LEAST_CLIMB ? best : null
}

/** How much worse than a climb until now one explains the values that ended a share of its length ago: below 1 it explains them better. */
export function endedFit(values: readonly number[], climb: Climb, share: number): number {
  const last = values.length - 1 - Math.max(2, Math.round(share * (values.length - climb.start)))
  let least = Number.POSITIVE_INFINITY
  for (let start = BEFORE - 1; start < last; start++)
    for (let end = start + 2; end <= last; end++) least = Math.min(least, fitRamp(values, start, end).squares)
  return climb.squares > 0 ? least / climb.squares : Number.POSITIVE_INFINITY
}

/** The level now, and how far it is above what was usual before the climb: memory that returns from a dip gains nothing. */
export function gained(values: readonly number[], climb: Climb): { readonly now: number; readonly gain: number } {
  const newest = Math.max(3, Math.round((values.length - climb.start) / 5))
  const now = median(values.slice(-newest))
  return { now, gain: now - quantile(values.slice(0, climb.start + 1), USUAL_TOP) }
}

/** Least squares of a level until `start`, a straight line until `end`, and a level after it. */
function fitRamp(values: readonly number[], start: number, end: number): Climb {
  const n = values.length
  let [sumX, sumXX, sumY, sumXY, sumYY] = [0, 0, 0, 0, 0]
  for (let i = 0; i < n; i++) {
    const x = Math.min(end, Math.max(start, i)) - start
    const y = values[i] ?? 0
    sumX += x
    sumXX += x * x
    sumY += y
    sumXY += x * y
    sumYY += y * y
  }
  const spread = n * sumXX - sumX * sumX
  const slope = spread > 0 ? (n * sumXY - sumX * sumY) / spread : 0
  const level = (sumY - slope * sumX) / n
  return { start, level, slope, squares: Math.max(0, sumYY - level * sumY - slope * sumXY) }
}

/** Standard error of the slope, widened for residuals that follow one another. */
export function slopeError(values: readonly number[], { start, level, slope }: Climb): number {
  const n = values.length
  let [sumX, sumXX, squares, products, before] = [0, 0, 0, 0, 0]
  for (let i = 0; i < n; i++) {
    const x = Math.max(0, i - start)
    const residual = (values[i] ?? 0) - level - slope * x
    sumX += x
    sumXX += x * x
    squares += residual * residual
    if (i > 0) products += residual * before
    before = residual
  }
  const correlation = squares > 0 ? Math.min(0.9, Math.max(0, products / squares)) : 0
  return Math.sqrt(((squares / (n - 2) / (sumXX - (sumX * sumX) / n)) * (1 + correlation)) / (1 - correlation)) + 1e-6
}
