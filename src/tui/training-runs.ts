/** The course of training runs while this screen looks: the loss over time, and how long it will take. */
import { peakFlops } from '../core/card-peaks.ts'
import { isGpuOfRun } from '../core/known/about-gpu.ts'
import { compareRuns, isRunning, type KnownRun, type KnownRuns, namesIn } from '../core/known/runs.ts'
import type { Finding, GpuInfo, Reading, Run, TrainingStep } from '../core/model.ts'
import { mfuOf } from '../core/model-work.ts'
import { tokensPerSecond } from '../core/rank-groups.ts'
import { type PhaseShare, PhaseSums } from '../core/step-phases.ts'
import type { RunData } from './screen-data.ts'

const MOST_COURSES = 32
const MOST_LOSSES = 400
const PHASED_STEPS = 50
/** Weight of the newest step in the mean step time. */
const SMOOTHING = 0.1
/** Names under which training code reports its total steps or epochs. */
const TOTAL_STEPS = ['total_steps', 'max_steps', 'num_training_steps', 'totalSteps', 'maxSteps']
const TOTAL_EPOCHS = ['total_epochs', 'num_epochs', 'num_train_epochs', 'max_epochs', 'totalEpochs']

interface Course {
  readonly losses: number[]
  /** The latest steps that had phases. */
  readonly phased: TrainingStep[]
  last: TrainingStep | null
  secondsPerStep: number | null
  epochsPerSecond: number | null
}

export class RunCourses {
  /** The one that was heard of longest ago is first. */
  readonly #courses = new Map<string, Course>()

  /** `runs`: with these steps. */
  accept(steps: readonly TrainingStep[], runs: KnownRuns): void {
    for (const step of steps) {
      if (step.rank !== runs.get(step.run)?.step?.rank) continue
      const course = this.#of(step.run)
      course.losses.push(step.loss ?? Number.NaN)
      if (course.losses.length > 2 * MOST_LOSSES) course.losses.splice(0, MOST_LOSSES)
      if (step.phaseSeconds !== null) course.phased.push(step)
      if (course.phased.length > 2 * PHASED_STEPS) course.phased.splice(0, PHASED_STEPS)
      if (course.last?.rank === step.rank) pace(course, course.last, step)
      course.last = step
    }
  }

  /** The course of a run before we came. */
  backfill(id: string, losses: readonly number[]): void {
    this.#of(id).losses.unshift(...losses.slice(-MOST_LOSSES))
  }

  clearHistory(): void {
    for (const { losses } of this.#courses.values()) losses.length = 0
  }

  /** Those with steps, running ones first. `present`: the time that figures are of. */
  views(runs: Iterable<KnownRun>, present: number, findings: readonly Finding[], gpus: readonly GpuInfo[]): RunData[] {
    const shown = withSteps(runs)
    shown.sort((a, b) => Number(isRunning(b, present)) - Number(isRunning(a, present)) || compareRuns(a, b))
    const nameOf = namesIn(shown)
    return shown.map((known): RunData => {
      const { id, run, step, steps } = known
      const course = this.#courses.get(id)
      const hasEnded = run !== null && run.endedAt !== null
      const about = (detector: string) => findings.find((finding) => finding.detector === detector && finding.subject.run === id) ?? null
      return {
        id,
        name: nameOf(known),
        step,
        ranks: steps.size,
        rankSteps: [...steps.values()].sort((a, b) => a.rank - b.rank),
        places: run?.places ?? [],
        straggler: about('straggler'),
        mfuRatio: mfu(run, step, gpus),
        losses: course?.losses.slice(-MOST_LOSSES) ?? [],
        phases: phaseShares(course?.phased ?? []),
        etaMs: hasEnded || !course ? null : eta(run?.totalSteps ?? null, course, step),
        quietMs: Math.max(0, present - step.at),
        outcome: hasEnded ? (run.outcome ?? 'ended') : null,
        leak: about('leak'),
        stall: about('stall'),
        oom: about('oom'),
      }
    })
  }

  #of(id: string): Course {
    const course = this.#courses.get(id) ?? { losses: [], phased: [], last: null, secondsPerStep: null, epochsPerSecond: null }
    this.#courses.delete(id)
    this.#courses.set(id, course)
    if (this.#courses.size > MOST_COURSES) for (const oldest of this.#courses.keys()) if (this.#courses.delete(oldest)) break
    return course
  }
}

function mfu(run: Run | null, step: TrainingStep, gpus: readonly GpuInfo[]): Reading {
  const card = gpus.find((gpu) => run?.gpus.some((name) => isGpuOfRun(gpu, name)))
  const pace = { samplesPerSecond: step.throughputPerSecond, tokensPerSecond: tokensPerSecond(step) }
  return mfuOf(run?.model, pace, peakFlops(card?.name ?? null, run?.model?.computeType ?? null))
}

function phaseShares(steps: readonly TrainingStep[]): readonly PhaseShare[] {
  const sums = new PhaseSums()
  for (const step of steps.slice(-PHASED_STEPS)) sums.add(step)
  return sums.shares()
}

type SteppingRun = KnownRun & { readonly step: TrainingStep }

function withSteps(runs: Iterable<KnownRun>): SteppingRun[] {
  return [...runs].filter((one): one is SteppingRun => one.step !== null)
}

/** Runs on this GPU, as far as they said so. */
export function runsOn(runs: KnownRuns, gpu: GpuInfo, isOnlyGpu: boolean): readonly SteppingRun[] {
  const all = withSteps(runs.values())
  return all.filter(({ run }) => {
    if (run !== null && run.endedAt !== null) return false
    return run && run.gpus.length > 0 ? run.gpus.some((name) => isGpuOfRun(gpu, name)) : isOnlyGpu && all.length === 1
  })
}

function pace(course: Course, before: TrainingStep, step: TrainingStep): void {
  const passed = step.step - before.step
  const seconds = (step.at - before.at) / 1000
  if (passed <= 0 || seconds <= 0) return
  course.secondsPerStep = smooth(course.secondsPerStep, seconds / passed)
  if (step.epoch !== null && before.epoch !== null && step.epoch > before.epoch)
    course.epochsPerSecond = smooth(course.epochsPerSecond, (step.epoch - before.epoch) / seconds)
}

function smooth(before: number | null, value: number): number {
  return before === null ? value : before + SMOOTHING * (value - before)
}

function eta(told: Reading, { secondsPerStep, epochsPerSecond }: Course, step: TrainingStep): Reading {
  const totalSteps = told ?? customOf(step, TOTAL_STEPS)
  if (totalSteps !== null && secondsPerStep !== null) return Math.max(0, (totalSteps - step.step) * secondsPerStep * 1000)
  const totalEpochs = customOf(step, TOTAL_EPOCHS)
  if (totalEpochs !== null && step.epoch !== null && epochsPerSecond)
    return Math.max(0, ((totalEpochs - step.epoch) / epochsPerSecond) * 1000)
  return null
}

function customOf(step: TrainingStep, names: readonly string[]): number | null {
  for (const name of names) {
    const value = step.custom?.[name]
    if (value !== undefined && Number.isFinite(value) && value > 0) return value
  }
  return null
}
