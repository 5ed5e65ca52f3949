import type { TrainingStep } from '../../core/model.ts'
import { NO_FIGURES } from '../../core/record.ts'
import { jobMemory } from './job-memory.ts'
import { type GpuPlan, isStraggler, isWrong, type Job, jobsBetween, momentOf, STRAGGLER_FACTOR, speedAt, trainedSeconds } from './jobs.ts'
import { hash } from './noise.ts'
import { leaderOf, plannedSteps, runIdOf } from './runs.ts'

const WARMUP_STEPS = 100
/** Steps older than this are not made up for after a long pause between two ticks. */
const CATCH_UP_SECONDS = 60

/** Steps that ended from `fromMs` on and before `toMs`, both since the first tick, which was at `origin`. */
export function stepsBetween(plan: GpuPlan, origin: number, fromMs: number, toMs: number): TrainingStep[] {
  const from = Math.max(fromMs / 1000, toMs / 1000 - CATCH_UP_SECONDS)
  const to = toMs / 1000
  const steps: TrainingStep[] = []
  for (const job of jobsBetween(plan, from, to)) {
    const { stepSeconds } = plan.workload
    const last = Math.min(plannedSteps(job), Math.ceil(trainedSeconds(job, Math.min(to, job.end)) / stepSeconds) + 1)
    for (let step = Math.max(1, Math.floor(trainedSeconds(job, from) / stepSeconds) - 1); step <= last; step++) {
      const ended = momentOf(job, trainedAtEnd(job, step))
      const endedMs = Math.round(ended * 1000)
      if (endedMs >= from * 1000 && endedMs < toMs && ended < job.end)
        steps.push(stepOf(job, runIdOf(job, origin), step, origin + endedMs, ended))
    }
  }
  return steps
}

function trainedAtEnd({ plan }: Job, step: number): number {
  if (step <= 0) return 0
  return (step + 0.24 * (hash(plan.seed, leaderOf(plan) + 800, step) - 0.5)) * plan.workload.stepSeconds
}

function stepOf(job: Job, run: string, step: number, at: number, seconds: number): TrainingStep {
  const { plan } = job
  const { workload, seed, gpu } = plan
  const duration = (trainedAtEnd(job, step) - trainedAtEnd(job, step - 1)) / (speedAt(job, seconds) || 1)
  const memory = jobMemory(job, seconds)
  // Two throws give a bell-like spread.
  const noise = hash(seed, gpu + 900 + job.number, step) + hash(seed, gpu + 1900 + job.number, step) - 1
  const shape = (1 + step / 40) ** -0.42
  const loss = (workload.lossFloor + (workload.lossStart - workload.lossFloor) * shape) * (1 + 0.02 * noise)
  const ripple = hash(seed, gpu + 2900, step)
  return {
    kind: 'step',
    at,
    run,
    rank: plan.runGpus.indexOf(gpu),
    step,
    ...NO_FIGURES,
    epoch: round((step * workload.batch) / workload.datasetSize, 5),
    loss: round(loss, 5),
    learningRate: round(learningRate(workload.learningRate, step / plannedSteps(job), step), 10),
    gradientNorm: round((0.42 + 1.6 / (1 + step / 60)) * (0.8 + 0.4 * ripple), 5),
    throughputPerSecond: round(workload.batch / duration, 2),
    stepSeconds: round(duration, 5),
    memoryAllocatedBytes: memory.allocatedBytes,
    memoryReservedBytes: memory.reservedBytes,
    memoryActiveBytes: memory.allocatedBytes,
    memoryInactiveSplitBytes: memory.inactiveSplitBytes,
    memoryPeakAllocatedBytes: memory.peakAllocatedBytes,
    memoryPeakReservedBytes: memory.reservedBytes,
    allocRetries: memory.allocRetries,
    oomCount: 0,
    phaseSeconds: phasesOf(job, duration, ripple, seconds),
    custom: null,
  }
}

/** Ranks wait for each other at the end of a step: all of them for the slow one, while there is one. */
function phasesOf(job: Job, duration: number, ripple: number, seconds: number): Record<string, number> {
  const { plan } = job
  const isWaiting = plan.trouble === 'straggler' && isWrong(job, seconds) && !isStraggler(plan)
  const work = duration / (isWaiting ? STRAGGLER_FACTOR : 1)
  const phases = { data: 0.03 + 0.03 * ripple, forward: 0.31, backward: 0.49, optimizer: 0.11 }
  const worked = Object.entries(phases).map(([name, share]) => [name, round(work * share, 5)] as const)
  if (plan.runGpus.length === 1) return Object.fromEntries(worked)
  // What is left of the step, but for the time between the phases.
  const sync = duration - work * (0.98 + 0.015 * ripple)
  return Object.fromEntries([...worked, ['sync', round(sync, 5)]])
}

/** Linear warm-up, then a cosine down to a tenth. */
function learningRate(peak: number, done: number, step: number): number {
  if (step < WARMUP_STEPS) return (peak * step) / WARMUP_STEPS
  return peak * (0.1 + 0.45 * (1 + Math.cos(Math.PI * Math.min(1, done))))
}

function round(value: number, decimals: number): number {
  const scale = 10 ** decimals
  return Math.round(value * scale) / scale
}
