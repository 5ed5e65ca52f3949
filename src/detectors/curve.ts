/**
 * Whether a training curve rises out of its usual range: z of each value against the running median, in units of its recent noise.
 * A jump is two of three values far out; a drift is a CUSUM over its limit. Hard batches are normal (a curve at 0.1 may see 1.5 every
 * thirty steps), so a value is far out only beyond what the curve did before, and the CUSUM adds the smaller of two neighboring z.
 * After hard batches a jump needs three far values in a row: two of three happen by chance once in ten thousand steps.
 * A smoothed curve wanders: its CUSUM is scaled down by its correlation. A rise that nobody would act on is ignored.
 */
import { clear, median, push, type RollingMedian, rollingMedian, sortedOf } from './rolling-median.ts'
import type { Thresholds } from './thresholds.ts'

export interface Curve {
  readonly level: RollingMedian
  readonly noise: RollingMedian
  /** Distances between neighbors, and between values eight steps apart. */
  readonly near: RollingMedian
  readonly apart: RollingMedian
  /** The largest deviation so far; fades. */
  record: number
  /** Too young to count as noise: a drift must not raise the scale it is measured with. */
  readonly young: number[]
  /** Whether the last three values were far out, newest in bit 0. */
  far: number
  cusum: number
  lastZ: number
  /** Normal values in a row. */
  calm: number
}

export interface CurveVerdict {
  level: number
  scale: number
  z: number
  alarm: 'jump' | 'drift' | null
}

const CALM_Z = 3
/** Below this an uncorrelated curve may look correlated by chance. */
const LEAST_CORRELATION = 0.5
const MOST_CORRELATION = 0.98
/** Correlation is an estimate, so a correlated curve needs a larger CUSUM. */
const WANDERING_FACTOR = 1.5
/** What a value within the usual range may add to the CUSUM. */
const USUAL_CLIP = 2.5
/** The third largest deviation so far is the curve's own extreme; a jump goes beyond this multiple of it. */
const RECORD_FACTOR = 1.5
const RECORD_RANK = 3
/** Half-life of 500 steps: hard batches may come less often than the noise window is long. */
const RECORD_FADE = 0.5 ** (1 / 500)
const YOUNG_STEPS = 8

export function curve(options: Thresholds<'lossSpike'>): Curve {
  return {
    level: rollingMedian(options.medianSteps),
    noise: rollingMedian(options.scaleSteps),
    near: rollingMedian(2 * options.medianSteps),
    apart: rollingMedian(2 * options.medianSteps),
    record: 0,
    young: [],
    far: 0,
    cusum: 0,
    lastZ: 0,
    calm: 0,
  }
}

/** At a level: the smallest noise that is believed, and the smallest rise that matters. */
export interface Floors {
  noise(level: number): number
  rise(level: number): number
}

/** Takes the next value; null until there is enough history. */
export function follow(state: Curve, value: number, options: Thresholds<'lossSpike'>, floors: Floors): CurveVerdict | null {
  const ready = state.level.ring.length >= options.medianSteps && state.noise.ring.length >= options.medianSteps
  const level = median(state.level)
  let verdict: CurveVerdict | null = null
  if (ready) {
    const scale = 1.4826 * median(state.noise) + floors.noise(level)
    const z = scale > 0 ? (value - level) / scale : 0
    const record = Math.max(sortedOf(state.noise).at(-RECORD_RANK) ?? 0, RECORD_FADE * state.record)
    state.record = record
    const far = z > options.z && value - level > RECORD_FACTOR * record
    state.far = ((state.far << 1) | (far ? 1 : 0)) & 0b111
    const hasHardBatches = record > options.z * scale
    const clip = value - level > (hasHardBatches ? RECORD_FACTOR : 1) * record ? options.cusumClip : USUAL_CLIP
    const share = independence(state)
    state.cusum = Math.max(0, state.cusum + Math.min(z, state.lastZ, clip) * share - options.cusumSlack)
    const rise = scale * Math.min(z, state.lastZ)
    state.lastZ = z
    state.calm = z < CALM_Z ? state.calm + 1 : 0
    const isTwice = state.far === 0b011 || state.far === 0b101
    const jump = state.far === 0b111 || (isTwice && !hasHardBatches)
    const drift = state.cusum > (share < 1 ? WANDERING_FACTOR : 1) * options.cusumLimit
    const least = floors.rise(level)
    verdict = { level, scale, z, alarm: jump && value - level > least ? 'jump' : drift && rise > least ? 'drift' : null }
    if (verdict.alarm !== null) state.cusum = 0
  }
  if (state.level.ring.length > 0) state.young.push(Math.abs(value - level))
  if (state.young.length > YOUNG_STEPS) push(state.noise, state.young.shift() ?? 0)
  noteDistances(state, value)
  push(state.level, value)
  return verdict
}

function noteDistances({ level: { ring, next }, near, apart }: Curve, value: number): void {
  const { length } = ring
  if (length < YOUNG_STEPS) return
  push(near, Math.abs(value - (ring[(next + length - 1) % length] ?? value)))
  push(apart, Math.abs(value - (ring[(next + length - YOUNG_STEPS) % length] ?? value)))
}

/** 1 for independent values; near 0 for a curve that wanders. */
function independence({ near, apart }: Curve): number {
  const spread = median(apart)
  const correlation = spread > 0 ? Math.min(MOST_CORRELATION, 1 - (median(near) / spread) ** 2) : 0
  return correlation < LEAST_CORRELATION ? 1 : Math.sqrt((1 - correlation) / (1 + correlation))
}

export function restart(state: Curve): void {
  clear(state.level)
  clear(state.noise)
  clear(state.near)
  clear(state.apart)
  state.record = 0
  state.young.length = 0
  state.far = 0
  state.cusum = 0
  state.lastZ = 0
  state.calm = 0
}
