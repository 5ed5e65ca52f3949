/**
 * Whether training has diverged: the loss stays an order of magnitude above its level, or is above where the run started after it had come down.
 * Every detector of training curves asks this, so that none learns from diverged steps or alarms on them.
 */
import type { TrainingStep } from '../core/model.ts'
import { clear, median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'

export interface DivergenceState {
  /** The first losses, until their median is known. */
  readonly early: number[]
  first: number | null
  /** The lowest level so far. */
  best: number
  /** Of healthy steps: the loss, its deviation, and the gradient norm. */
  readonly level: RollingMedian
  readonly noise: RollingMedian
  readonly norm: RollingMedian
  /** Of the latest steps, diverged ones included. */
  readonly latest: RollingMedian
  readonly lately: RollingMedian
  /** Steps in a row that are far out. */
  far: number
  /** Steps in a row that are back to normal. */
  back: number
  learningRate: number | null
  rateChange: RateChange | null
  begin: Beginning | null
}

export interface RateChange {
  readonly step: number
  readonly from: number
  readonly to: number
}

/** The last healthy state, and the first step that was not. */
export interface Beginning {
  readonly step: number
  readonly at: number
  readonly loss: number
  readonly lossBefore: number
  readonly noiseBefore: number
  readonly normBefore: number | null
  readonly norm: number | null
  readonly rateChange: RateChange | null
  readonly position: string | null
}

/** Enough for a level, few enough that a run which breaks early is noticed. */
const EARLY_STEPS = 16
const LEVEL_STEPS = 64
/** An order of magnitude above its level, in units of the level, or of the noise if that is larger. */
const FAR = 9
/** A curve that crosses zero is measured in units of its noise. */
const NOISE_UNIT = 3
/** Below this share of the first loss a loss is practically zero: a jump there means nothing. */
const ZERO_SHARE = 0.01
/** Two steps in a row may be one bad batch and its echo in the optimizer. */
const FAR_STEPS = 3
/** Times the usual gradient norm; one order of magnitude is a hard batch. */
const FAR_NORM = 100
/** A slow divergence: the median of so many steps is above where the run began. */
const SLOW_STEPS = 64
/** The run had learned: its level was once this share of the first loss, or lower. */
const LEARNED = 0.7
const BACK_STEPS = 8
/** A learning rate that moved by less than this share is its schedule. */
const RATE_SHARE = 0.2
const RATE_MEMORY_STEPS = 200
/** Custom values that say where in the data a step is. */
const POSITIONS = ['data_position', 'samples_seen', 'tokens_seen', 'batch_index', 'shard']

export function divergence(): DivergenceState {
  return {
    early: [],
    first: null,
    best: Number.MAX_VALUE,
    level: rollingMedian(LEVEL_STEPS),
    noise: rollingMedian(LEVEL_STEPS),
    norm: rollingMedian(LEVEL_STEPS),
    latest: rollingMedian(BACK_STEPS),
    lately: rollingMedian(SLOW_STEPS),
    far: 0,
    back: 0,
    learningRate: null,
    rateChange: null,
    begin: null,
  }
}

/** `suspected`: far out, but not for long enough; nothing is reported or learned until it is clear. */
export type Course = 'healthy' | 'suspected' | 'diverged'

/** Takes the next step. Steps without a finite loss change nothing. */
export function judgeCourse(state: DivergenceState, step: TrainingStep): Course {
  const { loss } = step
  if (loss === null || !Number.isFinite(loss)) return state.begin === null ? 'healthy' : 'diverged'
  noteRate(state, step)
  push(state.latest, loss)
  push(state.lately, loss)
  if (state.begin !== null) return isBack(state) ? recover(state) : 'diverged'
  if (state.level.ring.length >= EARLY_STEPS && (isFar(state, loss) || isFarNorm(state, step, loss))) {
    state.far++
    if (state.far >= FAR_STEPS) return begin(state, step, loss)
    return 'suspected'
  }
  state.far = 0
  if (isAboveItsBeginning(state)) return begin(state, step, loss)
  learn(state, step, loss)
  return 'healthy'
}

/** Whether this loss is below the level of the steps before it. False where the loss is not known. */
export function isFalling({ level }: DivergenceState, { loss }: TrainingStep): boolean {
  return loss !== null && level.ring.length > 0 && loss < median(level)
}

/** The run went back to a checkpoint: its first loss is still known. */
export function restartCourse(state: DivergenceState): void {
  for (const window of [state.level, state.noise, state.norm, state.latest, state.lately]) clear(window)
  state.far = 0
  state.back = 0
  state.begin = null
}

function learn(state: DivergenceState, { gradientNorm }: TrainingStep, loss: number): void {
  if (state.first === null) noteFirst(state, loss)
  if (state.level.ring.length > 0) push(state.noise, Math.abs(loss - median(state.level)))
  push(state.level, loss)
  if (state.level.ring.length >= EARLY_STEPS) state.best = Math.min(state.best, median(state.level))
  if (gradientNorm !== null && Number.isFinite(gradientNorm) && gradientNorm > 0) push(state.norm, gradientNorm)
}

function isFar(state: DivergenceState, loss: number): boolean {
  const level = median(state.level)
  const unit = Math.max(Math.abs(level), ZERO_SHARE * Math.abs(state.first ?? 0), NOISE_UNIT * noiseOf(state))
  return loss - level > FAR * unit
}

/** Gradients alone may be a hard batch; with a loss that does not fall they are not. */
function isFarNorm(state: DivergenceState, { gradientNorm }: TrainingStep, loss: number): boolean {
  if (gradientNorm === null || state.norm.ring.length < EARLY_STEPS) return false
  return gradientNorm > FAR_NORM * median(state.norm) && loss > median(state.level) + NOISE_UNIT * noiseOf(state)
}

function isAboveItsBeginning(state: DivergenceState): boolean {
  const { first, best, lately } = state
  if (lately.ring.length < SLOW_STEPS || first === null || first <= 0 || best > LEARNED * first) return false
  return median(lately) > first + NOISE_UNIT * noiseOf(state)
}

function begin(state: DivergenceState, step: TrainingStep, loss: number): Course {
  const { gradientNorm, custom } = step
  const { rateChange } = state
  const position = POSITIONS.find((name) => custom?.[name] !== undefined)
  state.begin = {
    step: step.step - state.far + (state.far > 0 ? 1 : 0),
    at: step.at,
    loss,
    lossBefore: state.far > 0 ? median(state.level) : state.best,
    noiseBefore: noiseOf(state),
    normBefore: state.norm.ring.length === 0 ? null : median(state.norm),
    norm: gradientNorm,
    rateChange: rateChange !== null && step.step - rateChange.step <= RATE_MEMORY_STEPS ? rateChange : null,
    position: position === undefined ? null : `${position} ${custom?.[position]}`,
  }
  state.back = 0
  return 'diverged'
}

function isBack(state: DivergenceState): boolean {
  const { begin: began, latest } = state
  if (began === null || latest.ring.length < BACK_STEPS) return false
  const { lossBefore, noiseBefore } = began
  const isNear = median(latest) <= lossBefore + Math.max(0.5 * Math.abs(lossBefore), NOISE_UNIT * noiseBefore)
  state.back = isNear ? state.back + 1 : 0
  return state.back >= BACK_STEPS
}

function recover(state: DivergenceState): Course {
  state.begin = null
  state.far = 0
  state.back = 0
  clear(state.lately)
  return 'healthy'
}

function noteRate(state: DivergenceState, { step, learningRate }: TrainingStep): void {
  if (learningRate === null || !Number.isFinite(learningRate)) return
  const before = state.learningRate
  if (before !== null && state.begin === null && Math.abs(learningRate - before) > RATE_SHARE * Math.abs(before))
    state.rateChange = { step, from: before, to: learningRate }
  state.learningRate = learningRate
}

function noteFirst(state: DivergenceState, loss: number): void {
  const { early } = state
  early.push(loss)
  if (early.length < EARLY_STEPS) return
  state.first = early.toSorted((a, b) => a - b)[EARLY_STEPS >> 1] ?? null
  early.length = 0
}

function noiseOf({ noise }: DivergenceState): number {
  return noise.ring.length === 0 ? 0 : 1.4826 * median(noise)
}
