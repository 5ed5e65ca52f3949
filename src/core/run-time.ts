/** What the wall time of a run went to, and how much of it was productive (goodput). Needs neither Node.js nor a package. */
import type { Reading, TrainingStep } from './model.ts'
import { phasesBy } from './step-phases.ts'

export const TIME_PARTS = ['productive', 'startup', 'data', 'checkpoint', 'evaluation', 'repeated', 'hang', 'rest'] as const
export type TimePart = (typeof TIME_PARTS)[number]

/** In the words of every screen. */
export const TIME_WORDS: Readonly<Record<TimePart, string>> = {
  productive: 'productive',
  startup: 'start-up',
  data: 'waiting for data',
  checkpoint: 'checkpoints',
  evaluation: 'evaluation',
  repeated: 'repeated steps',
  hang: 'standing still',
  rest: 'the rest',
}

export interface RunTime {
  readonly wallSeconds: number
  /** Productive ÷ wall; null before there is any time. */
  readonly goodputRatio: Reading
  /** They add up to the wall time. null: not measured, and so part of what is productive. */
  readonly seconds: Readonly<Record<TimePart, Reading>>
}

type TimedStep = Pick<TrainingStep, 'at' | 'step' | 'stepSeconds' | 'phaseSeconds'>

const NOTHING = {
  /** When the first step began. */
  beganAt: null as Reading,
  lastAt: null as Reading,
  lastStep: 0,
  highestStep: Number.NEGATIVE_INFINITY,
  /** Of steps that were done for the first time, without the first of each process. */
  steadySeconds: 0,
  steadySteps: 0,
  /** The first of each process: they compile, and fill caches. */
  firstSeconds: 0,
  firstSteps: 0,
  repeatedSeconds: 0,
  hangSeconds: 0,
  restartSeconds: 0,
  dataSeconds: 0,
  checkpointSeconds: 0,
  evaluationSeconds: 0,
  hasPhases: false,
  gpuSeconds: 0,
  gpuDataSeconds: 0,
  usualSeconds: null as Reading,
}

export type SavedTime = typeof NOTHING

/** A step that takes longer than this, and ten times as long as usual, for no reason that its phases know, stood still. */
const HANG_SECONDS = 30
const HANG_RATIO = 10
/** A longer step is not a time. */
const LONGEST_SECONDS = 1e8
/** Weight of the newest step in what is usual. */
const RECENT = 0.1

/** Of the steps of one rank, in the order of their time. */
export class TimeAccount {
  readonly #saved: SavedTime

  constructor(saved?: Partial<SavedTime>) {
    this.#saved = { ...NOTHING, ...saved }
    // JSON has no infinity.
    if (!Number.isFinite(this.#saved.highestStep)) this.#saved.highestStep = Number.NEGATIVE_INFINITY
  }

  toJSON(): SavedTime {
    return this.#saved
  }

  /** `isNewProcess`: another process than the one of the step before. */
  add(step: TimedStep, isNewProcess = false): void {
    const saved = this.#saved
    const { at, stepSeconds } = step
    const told = stepSeconds !== null && stepSeconds >= 0 && stepSeconds < LONGEST_SECONDS ? stepSeconds : null
    if (saved.lastAt === null) {
      saved.beganAt = at - (told ?? 0) * 1000
      this.#count(step, told ?? 0, 1, true)
    } else {
      // One that arrives late: its time was counted with the step after it.
      if (at < saved.lastAt) return
      const gap = (at - saved.lastAt) / 1000
      const passed = step.step - saved.lastStep
      const isRestart = isNewProcess || passed <= 0
      const steps = Math.max(1, passed)
      const covered = Math.min(gap, isRestart ? (told ?? 0) : told === null ? gap : told * steps)
      if (isRestart) saved.restartSeconds += gap - covered
      this.#count(step, covered, steps, isRestart)
    }
    saved.lastAt = at
    saved.lastStep = step.step
    saved.highestStep = Math.max(saved.highestStep, step.step)
  }

  /** Until when a run stands still without a step before that counts as a hang. */
  get #patienceSeconds(): number {
    return Math.max(HANG_SECONDS, HANG_RATIO * (this.#saved.usualSeconds ?? 0))
  }

  #count(step: TimedStep, covered: number, steps: number, isFirst: boolean): void {
    const saved = this.#saved
    if (step.step <= saved.highestStep) {
      saved.repeatedSeconds += covered
      return
    }
    const { data = 0, checkpoint = 0, evaluation = 0, logging = 0 } = phasesBy('host', step.phaseSeconds) ?? {}
    const usual = saved.usualSeconds
    const excess = covered - steps * ((usual ?? 0) + data + checkpoint + evaluation + logging)
    const hang = !isFirst && usual !== null && excess > this.#patienceSeconds ? excess : 0
    saved.hangSeconds += hang
    const worked = covered - hang
    if (isFirst) {
      saved.firstSeconds += worked
      saved.firstSteps += steps
    } else {
      saved.steadySeconds += worked
      saved.steadySteps += steps
      if (hang === 0) saved.usualSeconds = usual === null ? worked / steps : usual + RECENT * (worked / steps - usual)
      this.#countPhases(step, worked, steps)
    }
  }

  /** Never more than the step itself. */
  #countPhases({ phaseSeconds }: TimedStep, worked: number, steps: number): void {
    const saved = this.#saved
    const host = phasesBy('host', phaseSeconds)
    const gpu = phasesBy('gpu', phaseSeconds)
    if (host === null && gpu === null) return
    saved.hasPhases = true
    let left = worked
    for (const phase of ['evaluation', 'checkpoint', 'data'] as const) {
      const seconds = Math.min(left, (host?.[phase] ?? 0) * steps)
      saved[`${phase}Seconds`] += seconds
      left -= seconds
    }
    if (gpu === null) return
    saved.gpuSeconds += worked
    saved.gpuDataSeconds += Math.min(worked, (gpu.data ?? 0) * steps)
  }

  /** `isGoing`: the run has not ended, or not well: a last step long ago is one that stands still. */
  until(startedAt: number, until: number, isGoing: boolean): RunTime {
    const saved = this.#saved
    const { lastAt, beganAt } = saved
    const passed = Math.max(0, until - startedAt) / 1000
    if (lastAt === null || beganAt === null)
      return { wallSeconds: passed, goodputRatio: passed > 0 ? 0 : null, seconds: { ...NONE, startup: passed } }
    const silent = Math.max(0, until - lastAt) / 1000
    const { steadySeconds: steady, firstSeconds: first } = saved
    const warmUp = saved.steadySteps > 0 ? Math.max(0, first - saved.firstSteps * (steady / saved.steadySteps)) : 0
    const other = saved.evaluationSeconds + saved.checkpointSeconds
    // The GPU's clock knows what it waited for; a host that waits while the GPU still works loses nothing.
    const waited = saved.gpuSeconds > 0 ? (saved.gpuDataSeconds / saved.gpuSeconds) * steady : saved.dataSeconds
    const data = Math.max(0, Math.min(steady - other, waited))
    const known = {
      startup: Math.max(0, beganAt - startedAt) / 1000 + saved.restartSeconds + warmUp,
      data: saved.hasPhases ? data : null,
      checkpoint: saved.hasPhases ? saved.checkpointSeconds : null,
      evaluation: saved.hasPhases ? saved.evaluationSeconds : null,
      repeated: saved.repeatedSeconds,
      hang: saved.hangSeconds + (isGoing && silent > this.#patienceSeconds ? silent : 0),
      productive: first - warmUp + Math.max(0, steady - (saved.hasPhases ? data + other : 0)),
    }
    const sum = Object.values(known).reduce((total: number, value) => total + (value ?? 0), 0)
    // Clocks of two hosts may disagree: the time that steps took is not denied.
    const wallSeconds = Math.max(passed, sum)
    return {
      wallSeconds,
      goodputRatio: wallSeconds > 0 ? known.productive / wallSeconds : null,
      seconds: { ...known, rest: wallSeconds - sum },
    }
  }
}

const NONE: Record<TimePart, Reading> = {
  productive: 0,
  startup: 0,
  data: null,
  checkpoint: null,
  evaluation: null,
  repeated: 0,
  hang: 0,
  rest: 0,
}

/** Parts of at least half a percent, the largest first, without what is productive. */
export function lostParts({ seconds, wallSeconds }: RunTime): readonly { readonly part: TimePart; readonly ratio: number }[] {
  return TIME_PARTS.filter((part) => part !== 'productive')
    .map((part) => ({ part, ratio: wallSeconds > 0 ? (seconds[part] ?? 0) / wallSeconds : 0 }))
    .filter(({ ratio }) => ratio >= 0.005)
    .sort((a, b) => b.ratio - a.ratio)
}
