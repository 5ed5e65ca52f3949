/** Which job runs on a GPU when, and how far it has come: closed forms of the time since the first tick, in seconds. */
import { hash } from './noise.ts'
import { type DemoOptions, episodeOf, gpusOfRun, type Trouble, troubleOf } from './scenarios.ts'
import { WORKLOADS, type Workload } from './workloads.ts'

/** Above the kernel's largest PID (4,194,304): it can never be a real process. */
const FIRST_PID = 4_194_305
const JOBS_PER_GPU = 1000
const INTRUDER_PID = FIRST_PID + 900_000
/** A job in which memory leaks was well for at least this long. */
const GOOD_SECONDS = 60
/** The first step begins this long after the start. */
const LOAD_SECONDS = 9

/** What one GPU is going to do: jobs one after the other, each `periodSeconds` after the one before. */
export interface GpuPlan {
  readonly gpu: number
  readonly seed: number
  readonly trouble: Trouble
  readonly workload: Workload
  /** The GPUs of its run; its own rank is its place among them. */
  readonly runGpus: readonly number[]
  /** The first job began at this time of its period. */
  readonly firstStart: number
  /** When the period of the first job begins. */
  readonly firstPeriod: number
  readonly periodSeconds: number
  /** Between the end of a job and the start of the next. */
  readonly gapSeconds: number
  /** Of the first job. */
  readonly episode: { readonly from: number; readonly lasts: number } | null
}

export interface Job {
  readonly plan: GpuPlan
  readonly number: number
  readonly pid: number
  readonly start: number
  readonly end: number
  /** While something is wrong with it. */
  readonly wrong: { readonly from: number; readonly to: number } | null
}

export function planGpu(options: DemoOptions, gpu: number): GpuPlan {
  const { seed } = options
  const trouble = troubleOf(options, gpu)
  const runGpus = gpusOfRun(options, gpu)
  const leader = runGpus[0] ?? gpu
  const workload = WORKLOADS[(leader + Math.floor(hash(seed, 1, 0) * WORKLOADS.length)) % WORKLOADS.length] as Workload
  const base = { gpu, seed, trouble, workload, runGpus }
  const episode = episodeOf(options, trouble)
  if (episode === null) {
    const periodSeconds = 1500 + 900 * hash(seed, gpu, 2)
    // The first GPU shows a start; the others are somewhere in the middle.
    const firstStart = gpu === 0 ? 3 : -60 - 840 * hash(seed, gpu, 3)
    const gapSeconds = 25 + 40 * hash(seed, gpu, 4)
    return { ...base, firstStart, firstPeriod: firstStart, periodSeconds, gapSeconds, episode }
  }
  const { from, lasts, everySeconds: periodSeconds } = episode
  const isEndless = periodSeconds === Number.POSITIVE_INFINITY
  const firstStart = isFilling(trouble) ? from - GOOD_SECONDS : -75
  // Somebody has to notice that a job died before it is started again.
  const gapSeconds = isEndless ? 0 : isFilling(trouble) ? Math.min(150, periodSeconds - GOOD_SECONDS - lasts) : 45
  // A job that fills the memory ends with it; others end long after they recovered.
  const end = isFilling(trouble) ? from + lasts : from + periodSeconds / 2
  const firstPeriod = isEndless ? firstStart : end + gapSeconds - periodSeconds
  return { ...base, firstStart, firstPeriod, periodSeconds, gapSeconds, episode }
}

/** Memory in use grows until the job dies of it. */
export function isFilling(trouble: Trouble): boolean {
  return trouble === 'leak' || trouble === 'oom'
}

function jobNumber(plan: GpuPlan, seconds: number): number {
  return Math.max(0, Math.floor((seconds - plan.firstPeriod) / plan.periodSeconds))
}

function jobOf(plan: GpuPlan, number: number): Job | null {
  const { firstPeriod, firstStart, periodSeconds, gapSeconds, episode } = plan
  if (plan.trouble === 'idle') return null
  if (plan.trouble === 'healthy' && plan.gpu >= 2 && hash(plan.seed, plan.gpu + 100, number) < 0.2) return null
  const later = number === 0 ? 0 : number * periodSeconds
  return {
    plan,
    number,
    pid: FIRST_PID + plan.gpu * JOBS_PER_GPU + (number % JOBS_PER_GPU),
    start: number === 0 ? Math.max(firstStart, firstPeriod) : firstPeriod + later,
    end: firstPeriod + later + periodSeconds - gapSeconds,
    wrong: episode && { from: episode.from + later, to: episode.from + later + episode.lasts },
  }
}

/** null: the GPU is idle. */
export function jobAt(plan: GpuPlan, seconds: number): Job | null {
  const job = jobOf(plan, jobNumber(plan, seconds))
  return job !== null && seconds >= job.start && seconds < job.end ? job : null
}

/** Every job that ran at some time between the two. */
export function jobsBetween(plan: GpuPlan, from: number, to: number): Job[] {
  const jobs: Job[] = []
  for (let number = jobNumber(plan, from); number <= jobNumber(plan, to); number++) {
    const job = jobOf(plan, number)
    if (job !== null && job.end > from && job.start <= to) jobs.push(job)
  }
  return jobs
}

export function isWrong({ wrong }: Job, seconds: number): boolean {
  return wrong !== null && seconds >= wrong.from && seconds < wrong.to
}

/** Whose rank makes all the others of its run wait. */
export function isStraggler({ trouble, gpu, runGpus }: GpuPlan): boolean {
  return trouble === 'straggler' && runGpus.length > 1 && gpu === runGpus[runGpus.length >> 1]
}

/** A process of another user that joined the job. */
export function intruderOf(job: Job | null, seconds: number): { readonly pid: number; readonly since: number } | null {
  if (job === null || job.wrong === null || job.plan.trouble !== 'intruder' || !isWrong(job, seconds)) return null
  return { pid: INTRUDER_PID + job.plan.gpu * JOBS_PER_GPU + (job.number % JOBS_PER_GPU), since: job.wrong.from }
}

export type Phase = 'loading' | 'training' | 'evaluating' | 'saving' | 'hanging'

export function phaseAt(job: Job, seconds: number): Phase {
  if (job.plan.trouble === 'stall' && isWrong(job, seconds)) return 'hanging'
  const age = seconds - job.start - LOAD_SECONDS
  if (age < 0) return 'loading'
  const { cycleSeconds, evalSeconds, checkpointSeconds } = job.plan.workload
  const left = cycleSeconds - (age % cycleSeconds)
  return left <= checkpointSeconds ? 'saving' : left <= checkpointSeconds + evalSeconds ? 'evaluating' : 'training'
}

/** How much slower all ranks are while they wait for the slow one. */
export const STRAGGLER_FACTOR = 1.45
/** A hot card is slow only some time after its cooling failed, and some time after it is back. */
const HOT_DELAY_SECONDS = 25

/** Between two moments the job trains at a share of its usual speed. */
function slowdown({ plan, wrong }: Job): { from: number; to: number; factor: number } | null {
  if (wrong === null) return null
  switch (plan.trouble) {
    case 'intruder':
      return { ...wrong, factor: 0.7 }
    case 'overheat':
      return { from: wrong.from + HOT_DELAY_SECONDS, to: wrong.to + HOT_DELAY_SECONDS, factor: 0.6 }
    case 'straggler':
      return plan.runGpus.length > 1 ? { ...wrong, factor: 1 / STRAGGLER_FACTOR } : null
    case 'stall':
    case 'lost':
      return { ...wrong, factor: 0 }
    default:
      return null
  }
}

export function speedAt(job: Job, seconds: number): number {
  const slow = slowdown(job)
  return slow !== null && seconds > slow.from && seconds <= slow.to ? slow.factor : 1
}

/** Seconds of training that the job has done by a moment, at its usual speed. */
export function trainedSeconds(job: Job, seconds: number): number {
  const slow = slowdown(job)
  const done = undisturbed(job, seconds)
  if (slow === null || seconds <= slow.from) return done
  const before = undisturbed(job, slow.from)
  const during = undisturbed(job, Math.min(seconds, slow.to)) - before
  return done - during * (1 - slow.factor)
}

/** The moment at which the job has trained for so long: the inverse of trainedSeconds. */
export function momentOf(job: Job, trained: number): number {
  const slow = slowdown(job)
  const before = slow === null ? Number.POSITIVE_INFINITY : undisturbed(job, slow.from)
  if (slow === null || trained <= before) return undisturbedMoment(job, trained)
  const during = slow.to === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : undisturbed(job, slow.to) - before
  const slowed = (trained - before) / slow.factor
  return undisturbedMoment(job, slowed <= during ? before + slowed : trained + during * (1 - slow.factor))
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
