/** The simulated jobs as training runs: what an SDK would report of them, at their start and at their end. */
import type { RunEnding, RunSample } from '../../core/model.ts'
import { simulatedGpu } from './cards.ts'
import { type GpuPlan, isFilling, type Job, jobsBetween, trainedSeconds } from './jobs.ts'
import { hash } from './noise.ts'
import { oomOf } from './post-mortem.ts'

/** Of a job that does not come to its end. */
const ENDLESS_STEPS = 12_000

/** The GPU of rank 0. */
export function leaderOf({ runGpus, gpu }: GpuPlan): number {
  return runGpus[0] ?? gpu
}

export function plannedSteps(job: Job): number {
  const { plan, end } = job
  if (isFilling(plan.trouble) || end === Number.POSITIVE_INFINITY) return ENDLESS_STEPS
  return Math.floor(trainedSeconds(job, end) / plan.workload.stepSeconds - 0.5)
}

/** Differs from start to start of the simulation, as the ids of real runs do. */
export function runIdOf({ plan, number }: Job, origin: number): string {
  const part = (salt: number) => Math.floor(hash(plan.seed + salt, leaderOf(plan) * 1000 + number, origin % 2 ** 31) * 2 ** 32)
  return [1, 2].map((salt) => part(salt).toString(16).padStart(8, '0')).join('')
}

/** Runs that began or ended from `fromMs` on and before `toMs`, both since the first tick, which was at `origin`. */
export function runsBetween(plan: GpuPlan, origin: number, fromMs: number, toMs: number): RunSample[] {
  if (plan.gpu !== leaderOf(plan)) return []
  const isIn = (ms: number) => ms >= fromMs && ms < toMs
  const samples: RunSample[] = []
  // A millisecond more: the ends of jobs are rounded.
  for (const job of jobsBetween(plan, (fromMs - 1) / 1000, (toMs + 1) / 1000)) {
    const [startMs, endMs] = [Math.round(job.start * 1000), Math.round(job.end * 1000)]
    // What runs already is announced at the first tick.
    if (isIn(Math.max(0, startMs))) samples.push(runSample(job, origin, startMs, null))
    if (isIn(endMs)) samples.push(runSample(job, origin, startMs, endMs))
  }
  return samples
}

function runSample(job: Job, origin: number, startMs: number, endMs: number | null): RunSample {
  const { plan } = job
  const { workload } = plan
  const id = runIdOf(job, origin)
  const isDead = endMs !== null && isFilling(plan.trouble)
  const death = isDead ? oomOf(job, id, origin + endMs) : null
  return {
    kind: 'run',
    at: origin + (endMs ?? Math.max(0, startMs)),
    run: {
      id,
      name: workload.project,
      provenance: 'simulated',
      host: 'simulated',
      user: workload.user,
      pid: job.pid,
      gpus: plan.runGpus.map((gpu) => simulatedGpu(gpu).id),
      worldSize: plan.runGpus.length,
      totalSteps: plannedSteps(job),
      startedAt: origin + startMs,
      endedAt: endMs === null ? null : origin + endMs,
      outcome: endMs === null ? null : isDead ? 'oom' : 'success',
      ending: endMs === null ? null : (death?.ending ?? WELL),
    },
    about: { command: workload.command.join(' '), framework: workload.framework, report: death?.report ?? null },
  }
}

const WELL: RunEnding = { message: null, cause: null, place: null, isAsked: false, isPresumed: false }
