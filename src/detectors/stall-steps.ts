/** The pace of a run as its steps show it, and how long a silence has to be to mean something. */
import type { TrainingStep } from '../model.ts'
import type { ObservedTime } from './observed-time.ts'
import { median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'

export interface Pace {
  readonly run: string
  /** Time between reports that moved the run on, in ms. */
  readonly gaps: RollingMedian
  lastStep: number
  lastAt: number
  /** Observed ms of the last progress. */
  progressMs: number
  /** How late reports come: an SDK may send them in batches. */
  lagMs: number
  /** The last pauses that were longer than the pace allows: evaluations and checkpoints come again. */
  pauses: number[]
  /** Processes that were on the GPUs when it last moved. */
  pids: number[]
  pidsVersion: number
  user: string | null
  stalled: boolean
}

const GAPS = 33
const MIN_GAPS = 5
const PAUSES = 8
const MAX_LAG_MS = 60_000
const HABIT_FACTOR = 1.5

export function pace(step: TrainingStep, time: ObservedTime): Pace {
  return {
    run: step.run,
    gaps: rollingMedian(GAPS),
    lastStep: step.step,
    lastAt: step.at,
    progressMs: time.ms - lateness(step, time),
    lagMs: 0,
    pauses: [],
    pids: [],
    pidsVersion: -1,
    user: null,
    stalled: false,
  }
}

/** Notes a step of any rank; false when it does not move the run on. */
export function moveOn(state: Pace, step: TrainingStep, time: ObservedTime, limitMs: number): boolean {
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
  state.lastStep = step.step
  state.lastAt = step.at
  state.progressMs = time.ms - late
  return true
}

/** How long without a step is a stall, in ms; Infinity while the pace is not known. */
export function limitOf(state: Pace, options: { readonly stepTimes: number; readonly graceSeconds: number }): number {
  if (state.gaps.ring.length < MIN_GAPS) return Number.POSITIVE_INFINITY
  const byPace = options.stepTimes * median(state.gaps) + options.graceSeconds * 1000
  // Once may be an accident; what happened twice is a habit.
  const habit = state.pauses.length < 2 ? 0 : (state.pauses.toSorted((a, b) => b - a)[1] ?? 0)
  return Math.max(byPace, HABIT_FACTOR * habit) + state.lagMs
}

function lateness(step: TrainingStep, time: ObservedTime): number {
  return time.lastAt < 0 ? 0 : Math.min(MAX_LAG_MS, Math.max(0, time.lastAt - step.at))
}
