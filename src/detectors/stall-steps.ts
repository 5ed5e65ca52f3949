/** The pace of a run, and how long it may go without a step. */
import type { Reading, RunHang, Severity, TrainingStep } from '../core/model.ts'
import type { ObservedTime } from './observed-time.ts'
import { median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'

export interface Pace {
  readonly run: string
  /** ms between reports with progress. */
  readonly gaps: RollingMedian
  lastStep: number
  /** Steps since the report before: an SDK may report every tenth step only. */
  stride: number
  epoch: Reading
  /** The last step was the last of an epoch or the first of one. */
  epochEnds: boolean
  /** Ranks other than 0 report, too. */
  hasRanks: boolean
  lastAt: number
  /** Observed ms of the last progress. */
  progressMs: number
  /** How late reports arrive: an SDK may send them in batches. */
  lagMs: number
  /** The last unusual pauses: evaluations and checkpoints repeat. */
  pauses: number[]
  /** Processes on the GPUs at the last progress. */
  pids: number[]
  pidsVersion: number
  user: string | null
  /** GpuInfo.id; empty when unknown. */
  gpus: readonly string[]
  pid: Reading
  /** Who holds it up, as far as its ranks said it. */
  hang: RunHang | null
  /** Severity of its open finding; null: none. */
  said: Severity | null
}

export interface RunFacts {
  readonly user: string | null
  readonly gpus: readonly string[]
  readonly pid: Reading
}

const GAPS = 33
const MIN_GAPS = 5
const PAUSES = 8
const MAX_LAG_MS = 60_000
const HABIT_FACTOR = 1.5
/** Within this many step times after the last one, or half a second, a run is assumed to be in its next. */
const STEPPING_TIMES = 3
const STEPPING_MS = 500
/** Evaluations and checkpoints come at multiples of this. By chance a run stops there once in 25 times. */
const ROUND_STEPS = 50
/** Where fewer steps are reported, all of them may be round. */
const ROUND_STRIDE = 5

export function pace(step: TrainingStep, time: ObservedTime, facts?: RunFacts): Pace {
  return {
    run: step.run,
    gaps: rollingMedian(GAPS),
    lastStep: step.step,
    stride: 0,
    epoch: step.epoch,
    epochEnds: false,
    hasRanks: step.rank > 0,
    lastAt: step.at,
    progressMs: momentOf(step, time),
    lagMs: 0,
    pauses: [],
    pids: [],
    pidsVersion: -1,
    user: facts?.user ?? null,
    gpus: facts?.gpus ?? [],
    pid: facts?.pid ?? null,
    hang: null,
    said: null,
  }
}

/** Notes a step of any rank; false when it is no progress. */
export function moveOn(state: Pace, step: TrainingStep, time: ObservedTime, limitMs: number): boolean {
  if (step.rank > 0) state.hasRanks = true
  const late = lateness(step, time)
  state.lagMs = Math.max(late, state.lagMs * 0.995)
  const rewound = step.step < state.lastStep && step.at > state.lastAt
  if (step.step <= state.lastStep && !rewound) return false
  const gap = step.at - state.lastAt
  if (gap > 0 && !rewound) {
    if (gap > limitMs) {
      state.pauses.push(gap)
      if (state.pauses.length > PAUSES) state.pauses.shift()
    } else push(state.gaps, gap)
  }
  noteEpoch(state, step.epoch)
  state.stride = step.step - state.lastStep
  state.lastStep = step.step
  state.lastAt = step.at
  state.progressMs = momentOf(step, time)
  return true
}

/** With fractional epochs the end is where the next step would pass it; whole numbers only show that a new one has begun. */
function noteEpoch(state: Pace, epoch: Reading): void {
  const moved = epoch === null || state.epoch === null ? 0 : epoch - state.epoch
  state.epoch = epoch
  state.epochEnds = epoch !== null && moved > 0 && moved < 0.5 && Math.floor(epoch + 1.5 * moved) > Math.floor(epoch - moved)
}

/** Whether the last step is one after which people evaluate or save; steps may be counted from 0. */
export function atRoundNumber(state: Pace): boolean {
  if (state.lastStep < ROUND_STEPS - 1 || !(state.stride > 0 && state.stride <= ROUND_STRIDE)) return false
  return state.lastStep % ROUND_STEPS === 0 || (state.lastStep + 1) % ROUND_STEPS === 0
}

/** What the ranks said since the last step; null: nothing. An earlier version kept none. */
export function hangOf({ hang, lastAt }: Pace): RunHang | null {
  return hang && hang.at >= lastAt ? hang : null
}

/** Of the pauses that ended, in ms; 0: none. */
export function longestPause(state: Pace): number {
  let longest = 0
  for (const pause of state.pauses) if (pause > longest) longest = pause
  return longest
}

export function isStepping(state: Pace, time: ObservedTime): boolean {
  if (state.gaps.ring.length < MIN_GAPS) return false
  return time.ms - state.progressMs <= Math.max(STEPPING_MS, STEPPING_TIMES * median(state.gaps)) + state.lagMs
}

/** Time without a step that is a stall, in ms; Infinity while the pace is unknown. */
export function limitOf(state: Pace, options: { readonly stepTimes: number; readonly graceSeconds: number }): number {
  if (state.gaps.ring.length < MIN_GAPS) return Number.POSITIVE_INFINITY
  const byPace = options.stepTimes * median(state.gaps) + options.graceSeconds * 1000
  // One long pause may be an accident, two are a habit.
  const habit = state.pauses.length < 2 ? 0 : (state.pauses.toSorted((a, b) => b - a)[1] ?? 0)
  return Math.max(byPace, HABIT_FACTOR * habit) + state.lagMs
}

/** Observed ms of a step; may be ahead of the last sample, which may be a minute old. */
function momentOf(step: TrainingStep, time: ObservedTime): number {
  return time.lastAt < 0 ? time.ms : time.ms + Math.max(-MAX_LAG_MS, step.at - time.lastAt)
}

function lateness(step: TrainingStep, time: ObservedTime): number {
  return time.lastAt < 0 ? 0 : Math.min(MAX_LAG_MS, Math.max(0, time.lastAt - step.at))
}
