/**
 * Whether a training curve leaves its course upwards: z of each value against the running median before it, on the scale of its own
 * recent noise. A jump is two of three values far out, a drift is a CUSUM over its limit.
 *
 * Batches differ: a curve at 0.1 may see one of 1.5 every thirty steps and be well (the recorded runs do). So a value is far out only
 * beyond what the curve has done before, and the CUSUM adds the smaller of two neighbouring z, since a drift lasts and a hard batch does not.
 */
import { clear, median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'

export interface CurveOptions {
  readonly z: number
  readonly cusumSlack: number
  readonly cusumLimit: number
  readonly cusumClip: number
  readonly medianSteps: number
  readonly scaleSteps: number
}

export interface Curve {
  readonly level: RollingMedian
  readonly noise: RollingMedian
  /** Deviations that are too young to be part of the noise: a drift must not raise the scale it is measured with. */
  readonly young: number[]
  /** Whether the last three values were far out, newest in bit 0. */
  far: number
  cusum: number
  lastZ: number
  /** Values in a row that were where they belong. */
  calm: number
}

export interface CurveVerdict {
  level: number
  scale: number
  z: number
  alarm: 'jump' | 'drift' | null
}

const CALM_Z = 3
/** What a value within the usual range may add to the CUSUM. */
const USUAL_CLIP = 2
/** The third largest deviation so far is the curve's own extreme; a jump goes beyond this multiple of it. */
const RECORD_FACTOR = 1.5
const RECORD_RANK = 3
const YOUNG_STEPS = 8

export function curve(options: CurveOptions): Curve {
  return {
    level: rollingMedian(options.medianSteps),
    noise: rollingMedian(options.scaleSteps),
    young: [],
    far: 0,
    cusum: 0,
    lastZ: 0,
    calm: 0,
  }
}

/** Takes the next value; null until there is enough of a past. `floor`: the least noise that is believed, at a level. */
export function follow(state: Curve, value: number, options: CurveOptions, floor: (level: number) => number): CurveVerdict | null {
  const ready = state.level.ring.length >= options.medianSteps && state.noise.ring.length >= options.medianSteps
  const level = median(state.level)
  let verdict: CurveVerdict | null = null
  if (ready) {
    const scale = 1.4826 * median(state.noise) + floor(level)
    const z = scale > 0 ? (value - level) / scale : 0
    const record = state.noise.sorted[state.noise.sorted.length - RECORD_RANK] ?? 0
    const far = z > options.z && value - level > RECORD_FACTOR * record
    state.far = ((state.far << 1) | (far ? 1 : 0)) & 0b111
    const clip = value - level > record ? options.cusumClip : USUAL_CLIP
    state.cusum = Math.max(0, state.cusum + Math.min(z, state.lastZ, clip) - options.cusumSlack)
    state.lastZ = z
    state.calm = z < CALM_Z ? state.calm + 1 : 0
    const jump = state.far === 0b011 || state.far === 0b101 || state.far === 0b111
    verdict = { level, scale, z, alarm: jump ? 'jump' : state.cusum > options.cusumLimit ? 'drift' : null }
    if (verdict.alarm !== null) state.cusum = 0
  }
  if (state.level.ring.length > 0) state.young.push(Math.abs(value - level))
  if (state.young.length > YOUNG_STEPS) push(state.noise, state.young.shift() ?? 0)
  push(state.level, value)
  return verdict
}

export function restart(state: Curve): void {
  clear(state.level)
  clear(state.noise)
  state.young.length = 0
  state.far = 0
  state.cusum = 0
  state.lastZ = 0
  state.calm = 0
}
