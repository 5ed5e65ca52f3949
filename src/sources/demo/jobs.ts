/** Which job runs on a GPU when, and how far it has come: closed forms of the time since the first tick, in seconds. */
import { hash } from './noise.ts'
import { type DemoOptions, FILL_SECONDS, TROUBLE_AT, type Trouble, troubleOf } from './scenarios.ts'
import { WORKLOADS, type Workload } from './workloads.ts'

/** Above the kernel's largest PID (4,194,304): it can never be a real process. */
const FIRST_PID = 4_194_305
const JOBS_PER_GPU = 1000
const INTRUDER_PID = FIRST_PID + 900_000

/** What one GPU is going to do: jobs one after the other, each `periodSeconds` after the one before. */
export interface GpuPlan {
  readonly gpu: number
  readonly seed: number
  readonly trouble: Trouble
  readonly workload: Workload
  readonly firstStart: number
  readonly periodSeconds: number
  /** Between the end of a job and the start of the next. */
  readonly gapSeconds: number
}

export interface Job {
  readonly plan: GpuPlan
  readonly number: number
  readonly pid: number
  readonly run: string
  readonly start: number
  readonly end: number
}

export function planGpu(options: DemoOptions, gpu: number): GpuPlan {
  const { seed } = options
  const trouble = troubleOf(options, gpu)
  const workload = WORKLOADS[(gpu + Math.floor(hash(seed, 1, 0) * WORKLOADS.length)) % WORKLOADS.length] as Workload
  const base = { gpu, seed, trouble, workload }
  if (trouble === 'leak' || trouble === 'oom') {
    const firstStart = TROUBLE_AT[trouble] - GOOD_SECONDS
    const gapSeconds = trouble === 'leak' ? 14 : 8
    return { ...base, firstStart, periodSeconds: GOOD_SECONDS + FILL_SECONDS[trouble] + gapSeconds, gapSeconds }
  }
  if (trouble !== 'healthy') return { ...base, firstStart: -75, periodSeconds: Number.POSITIVE_INFINITY, gapSeconds: 0 }
  const periodSeconds = 1500 + 900 * hash(seed, gpu, 2)
  // The first GPU shows a start; the others are somewhere in the middle.
  const firstStart = gpu === 0 ? 3 : -60 - 840 * hash(seed, gpu, 3)
  return { ...base, firstStart, periodSeconds, gapSeconds: 25 + 40 * hash(seed, gpu, 4) }
}

function jobNumber(plan: GpuPlan, seconds: number): number {
  return Math.floor((seconds - plan.firstStart) / plan.periodSeconds)
}

function jobOf(plan: GpuPlan, number: number): Job | null {
  if (number < 0) return null
  if (plan.trouble === 'healthy' && plan.gpu >= 2 && hash(plan.seed, plan.gpu + 100, number) < 0.2) return null
  const start = plan.firstStart + (number === 0 ? 0 : number * plan.periodSeconds)
  return {
    plan,
    number,
    pid: FIRST_PID + plan.gpu * JOBS_PER_GPU + (number % JOBS_PER_GPU),
    run: `${plan.workload.project}-gpu${plan.gpu}-${number + 1}`,
    start,
    end: start + plan.periodSeconds - plan.gapSeconds,
  }
}

/** null: the GPU is idle. */
export function jobAt(plan: GpuPlan, seconds: number): Job | null {
  const job = jobOf(plan, jobNumber(plan, seconds))
  return job !== null && seconds < job.end ? job : null
}

/** Every job that ran at some time between the two. */
export function jobsBetween(plan: GpuPlan, from: number, to: number): Job[] {
  const jobs: Job[] = []
  for (let number = Math.max(0, jobNumber(plan, from)); number <= jobNumber(plan, to); number++) {
    const job = jobOf(plan, number)
    if (job !== null && job.end > from) jobs.push(job)
  }
  return jobs
}

export function intruderPid(gpu: number): number {
  return INTRUDER_PID + gpu
}

/** A leaking job behaves for so long after its start. */
export const GOOD_SECONDS = 60
/** The first step begins this long after the start. */
const LOAD_SECONDS = 9

export type Phase = 'loading' | 'training' | 'evaluating' | 'saving' | 'hanging'

export function phaseAt(job: Job, seconds: number): Phase {
  if (job.plan.trouble === 'stall' && seconds >= TROUBLE_AT.stall) return 'hanging'
  const age = seconds - job.start - LOAD_SECONDS
  if (age < 0) return 'loading'
  const { cycleSeconds, evalSeconds, checkpointSeconds } = job.plan.workload
  const left = cycleSeconds - (age % cycleSeconds)
  return left <= checkpointSeconds ? 'saving' : left <= checkpointSeconds + evalSeconds ? 'evaluating' : 'training'
}

/** How fast the job trains from a moment on, against its usual speed. */
function slowdown(plan: GpuPlan): { from: number; factor: number } | null {
  switch (plan.trouble) {
    case 'intruder':
      return { from: TROUBLE_AT.intruder, factor: 0.7 }
    case 'overheat':
      return { from: TROUBLE_AT.overheat + 25, factor: 0.6 }
    case 'stall':
      return { from: TROUBLE_AT.stall, factor: 0 }
    case 'lost':
      return { from: TROUBLE_AT.lost, factor: 0 }
    default:
      return null
  }
}

export function speedAt(plan: GpuPlan, seconds: number): number {
  const slow = slowdown(plan)
  return slow !== null && seconds > slow.from ? slow.factor : 1
}

/** Seconds of training that the job has done by a moment, at its usual speed. */
export function trainedSeconds(job: Job, seconds: number): number {
  const slow = slowdown(job.plan)
  if (slow === null || seconds <= slow.from) return undisturbed(job, seconds)
  const before = undisturbed(job, slow.from)
  return before + (undisturbed(job, seconds) - before) * slow.factor
}

/** The moment at which the job has trained for so long: the inverse of trainedSeconds. */
export function momentOf(job: Job, trained: number): number {
  const slow = slowdown(job.plan)
  const before = slow === null ? trained : undisturbed(job, slow.from)
  return undisturbedMoment(job, slow === null || trained <= before ? trained : before + (trained - before) / slow.factor)
}

function undisturbed(job: Job, seconds: number): number {
  const { cycleSeconds } = job.plan.workload
  const age = seconds - job.start - LOAD_SECONDS
  if (age <= 0) return 0
  const cycles = Math.floor(age / cycleSeconds)
  return cycles * trainingPerCycle(job) + Math.min(age - cycles * cycleSeconds, trainingPerCycle(job))
}

function undisturbedMoment(job: Job, trained: number): number {
  if (trained === Number.POSITIVE_INFINITY) return trained
  const cycles = Math.floor(trained / trainingPerCycle(job))
  return job.start + LOAD_SECONDS + cycles * job.plan.workload.cycleSeconds + (trained - cycles * trainingPerCycle(job))
}

function trainingPerCycle({ plan: { workload } }: Job): number {
  return workload.cycleSeconds - workload.evalSeconds - workload.checkpointSeconds
}
