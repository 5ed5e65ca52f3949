/**
 * Whether training has diverged: the loss or the gradient norm stays orders of magnitude above its level, or the loss is above where the run started
 * after it had come down. Every detector of training curves asks this, so that none learns from diverged steps or alarms on them.
 */
import type { Finding, TrainingStep } from '../core/model.ts'
import { clear, median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'

export interface DivergenceState {
  /** The first losses, until their median is known. */
  readonly early: number[]
  first: number | null
  /** The lowest level so far, and the noise there. */
  best: number
  bestNoise: number
  /** The lowest level of the gradient norm. */
  bestNorm: number
  /** Of healthy steps: the loss, its deviation, and the gradient norm. */
  readonly level: RollingMedian
  readonly noise: RollingMedian
  readonly norm: RollingMedian
  /** Of the latest steps, diverged ones included. */
  readonly latest: RollingMedian
  readonly lately: RollingMedian
  readonly latestNorm: RollingMedian
  /** The last step near the lowest level. */
  nearStep: number
  /** Steps in a row that are far out. */
  far: number
  /** Steps in a row whose norm is far out, whatever the loss. */
  farNorm: number
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
  /** null: only gradients are known. */
  readonly loss: number | null
  readonly lossBefore: number | null
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
/** Steps in a row after which gradients alone are enough, if their norm is above what any model needs. */
const FAR_NORM_STEPS = 24
const LEAST_NORM = 10
/** Times the lowest norm with a loss that is not worse: no training needs that. */
const LOST_NORM = 10_000
/** Times the usual norm that is near it again. */
const NEAR_NORM = 10
/** A slow divergence: the median of so many steps is above where the run began. */
const SLOW_STEPS = 64
/** The run had learned: its level was once this share of the first loss, or lower. */
const LEARNED = 0.7
/** A level that left its lowest within so many steps was already diverging; one that left it earlier is a harder part of the data. */
const RISE_STEPS = 4 * LEVEL_STEPS
const BACK_STEPS = 8
/** A learning rate that moved by less than this share is its schedule. */
const RATE_SHARE = 0.2
const RATE_MEMORY_STEPS = 200
/** Custom values that say where in the data a step is. */
const POSITIONS = ['data_position', 'samples_seen', 'tokens_seen', 'batch_index', 'shard']

/** A divergence that follows a rise within this time says more: both are one alert. Later, whoever heard of the rise must not hear that it is over. */
export const PART_OF_IT_SECONDS = 10

/** Steps and alerts do not have the same clock. */
const MARGIN_MS = 1500

/** Whether a finding turned out to be the first steps of a divergence. */
export function becomesDivergence(finding: Finding | undefined, at: number): boolean {
  return finding !== undefined && at - finding.since < PART_OF_IT_SECONDS * 1000 - MARGIN_MS
}

export function divergence(): DivergenceState {
  return {
    early: [],
    first: null,
    best: Number.MAX_VALUE,
    bestNoise: 0,
    bestNorm: Number.MAX_VALUE,
    level: rollingMedian(LEVEL_STEPS),
    noise: rollingMedian(LEVEL_STEPS),
    norm: rollingMedian(LEVEL_STEPS),
    latest: rollingMedian(BACK_STEPS),
    lately: rollingMedian(SLOW_STEPS),
    latestNorm: rollingMedian(BACK_STEPS),
    nearStep: 0,
    far: 0,
    farNorm: 0,
    back: 0,
    learningRate: null,
    rateChange: null,
    begin: null,
  }
}

/** `suspected`: far out, but not for long enough; nothing is reported or learned until it is clear. */
export type Course = 'healthy' | 'suspected' | 'diverged'

/** Takes the next step. Steps without a finite loss are judged by their gradients. */
export function judgeCourse(state: DivergenceState, step: TrainingStep): Course {
  const loss = step.loss !== null && Number.isFinite(step.loss) ? step.loss : null
  if (isUsable(step.gradientNorm)) push(state.latestNorm, step.gradientNorm)
  if (loss === null) return judgeNorm(state, step)
  noteRate(state, step)
  push(state.latest, loss)
  push(state.lately, loss)
  if (state.begin !== null) return isBack(state) ? recover(state) : 'diverged'
  if (state.level.ring.length >= EARLY_STEPS && (isFar(state, loss) || isFarNorm(state, step, loss))) {
    state.far++
    if (state.far >= FAR_STEPS) return begin(state, step, loss, state.far)
    return 'suspected'
  }
  state.far = 0
  const isWorse = median(state.level) > state.best + NOISE_UNIT * state.bestNoise
  state.farNorm = isLostNorm(state, step, isWorse ? FAR_NORM : LOST_NORM) ? state.farNorm + 1 : 0
  if (state.farNorm >= FAR_NORM_STEPS) return begin(state, step, loss, state.farNorm)
  if (isAboveItsBeginning(state)) return begin(state, step, loss, step.step - state.nearStep)
  learn(state, step, loss)
  return 'healthy'
}

function judgeNorm(state: DivergenceState, step: TrainingStep): Course {
  if (!isUsable(step.gradientNorm)) return state.begin === null ? 'healthy' : 'diverged'
  if (state.begin !== null) return state.begin.loss === null && isBack(state) ? recover(state) : 'diverged'
  state.farNorm = isLostNorm(state, step, FAR_NORM) ? state.farNorm + 1 : 0
  if (state.farNorm >= FAR_NORM_STEPS) return begin(state, step, null, state.farNorm)
  learnNorm(state, step.gradientNorm)
  return 'healthy'
}

function isUsable(norm: number | null): norm is number {
  return norm !== null && Number.isFinite(norm) && norm > 0
}

/** Whether this loss is below the level of the steps before it. False where the loss is not known. */
export function isFalling({ level }: DivergenceState, { loss }: TrainingStep): boolean {
  return loss !== null && level.ring.length > 0 && loss < median(level)
}

/** The run went back to a checkpoint: its first loss is still known. */
export function restartCourse(state: DivergenceState): void {
  for (const window of [state.level, state.noise, state.norm, state.latest, state.lately, state.latestNorm]) clear(window)
  state.far = 0
  state.farNorm = 0
  state.back = 0
  state.begin = null
}

function learn(state: DivergenceState, { step, gradientNorm }: TrainingStep, loss: number): void {
  if (state.first === null) noteFirst(state, loss)
  if (state.level.ring.length > 0) push(state.noise, Math.abs(loss - median(state.level)))
  push(state.level, loss)
  const level = median(state.level)
  if (state.level.ring.length >= EARLY_STEPS && level < state.best) {
    state.best = level
    state.bestNoise = noiseOf(state)
  }
  if (loss <= state.best + unitOf(state, state.best, state.bestNoise)) state.nearStep = step
  learnNorm(state, gradientNorm)
}

function learnNorm(state: DivergenceState, norm: number | null): void {
  if (!isUsable(norm) || state.farNorm > 0) return
  push(state.norm, norm)
  if (state.norm.ring.length >= EARLY_STEPS) state.bestNorm = Math.min(state.bestNorm, median(state.norm))
}

/** What a rise is measured in. */
function unitOf({ first }: DivergenceState, level: number, noise: number): number {
  return Math.max(Math.abs(level), ZERO_SHARE * Math.abs(first ?? 0), NOISE_UNIT * noise)
}

function isFar(state: DivergenceState, loss: number): boolean {
  const level = median(state.level)
  return loss - level > FAR * unitOf(state, level, noiseOf(state))
}

/** Gradients alone may be a hard batch; with a loss that rises they are not. */
function isFarNorm(state: DivergenceState, { gradientNorm }: TrainingStep, loss: number): boolean {
  if (gradientNorm === null || state.norm.ring.length < EARLY_STEPS) return false
  return gradientNorm > FAR_NORM * median(state.norm) && loss > median(state.level) + NOISE_UNIT * noiseOf(state)
}

/** Far above the lowest level: no rise is too slow for it. */
function isLostNorm({ bestNorm }: DivergenceState, { gradientNorm }: TrainingStep, times: number): boolean {
  return isUsable(gradientNorm) && gradientNorm > Math.max(LEAST_NORM, times * bestNorm)
}

/** Too slow for a level that follows: above where it began after it had come down, or by orders of magnitude. */
function isAboveItsBeginning(state: DivergenceState): boolean {
  const { first, best, bestNoise, lately } = state
  if (lately.ring.length < SLOW_STEPS || first === null || first <= 0) return false
  const now = median(lately)
  if (now <= first + NOISE_UNIT * (best <= LEARNED * first ? noiseOf(state) : bestNoise)) return false
  return best <= LEARNED * first || now - best > FAR * unitOf(state, best, bestNoise)
}

/** `farSteps`: for how many steps it has been far out. */
function begin(state: DivergenceState, step: TrainingStep, loss: number | null, farSteps: number): Course {
  const { gradientNorm, custom } = step
  const { rateChange, best, bestNoise, nearStep } = state
  const hasRisen = step.step - nearStep <= RISE_STEPS && median(state.level) > best + unitOf(state, best, bestNoise)
  const isFromLowest = hasRisen || state.far + state.farNorm === 0
  const position = POSITIONS.find((name) => custom?.[name] !== undefined)
  state.begin = {
    step: hasRisen ? nearStep + 1 : step.step - farSteps + 1,
    at: step.at,
    loss,
    lossBefore: loss === null ? null : isFromLowest ? best : median(state.level),
    noiseBefore: hasRisen ? bestNoise : noiseOf(state),
    normBefore: normBefore(state, isFromLowest),
    norm: gradientNorm,
    rateChange: rateChange !== null && step.step - rateChange.step <= RATE_MEMORY_STEPS ? rateChange : null,
    position: position === undefined ? null : `${position} ${custom?.[position]}`,
  }
  state.back = 0
  return 'diverged'
}

function normBefore({ norm, bestNorm, farNorm }: DivergenceState, isFromLowest: boolean): number | null {
  if (norm.ring.length === 0) return null
  return isFromLowest || farNorm > 0 ? Math.min(bestNorm, median(norm)) : median(norm)
}

function isBack(state: DivergenceState): boolean {
  state.back = isNearAgain(state) ? state.back + 1 : 0
  return state.back >= BACK_STEPS
}

/** A loss that falls below its old level excuses any gradients. */
function isNearAgain({ begin: began, latest, latestNorm }: DivergenceState): boolean {
  if (began === null) return true
  const { loss, lossBefore, noiseBefore, normBefore } = began
  const isNormNear = normBefore === null || latestNorm.ring.length === 0 || median(latestNorm) <= NEAR_NORM * normBefore
  if (loss === null || lossBefore === null) return isNormNear
  if (latest.ring.length < BACK_STEPS) return false
  const now = median(latest)
  if (now > lossBefore + Math.max(0.5 * Math.abs(lossBefore), NOISE_UNIT * noiseBefore)) return false
  return isNormNear || now < lossBefore - NOISE_UNIT * noiseBefore
}

function recover(state: DivergenceState): Course {
  state.begin = null
  state.far = 0
  state.farNorm = 0
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
