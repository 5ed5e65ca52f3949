import { cardOf } from './cards.ts'
import { CONTEXT_BYTES, jobMemory } from './job-memory.ts'
import { type GpuPlan, intruderOf, isStraggler, isWrong, type Job, jobAt, type Phase, phaseAt, speedAt, trainedSeconds } from './jobs.ts'
import { clamp, drift, hash } from './noise.ts'

const MEBIBYTE = 1024 * 1024

export interface Tenant {
  readonly pid: number
  readonly memoryBytes: number
  readonly smRatio: number
}

export interface Activity {
  readonly job: Job | null
  readonly phase: Phase | 'idle'
  readonly tenants: readonly Tenant[]
  readonly utilization: number
  readonly tensor: number
  readonly dram: number
  /** Of the room between idle and limit, before any throttling. */
  readonly power: number
  readonly pcieRxBytesPerSecond: number
  readonly pcieTxBytesPerSecond: number
}

interface Load {
  readonly utilization: number
  readonly tensor: number
  readonly dram: number
  readonly power: number
  readonly rx: number
  readonly tx: number
}

const NO_LOAD: Load = { utilization: 0, tensor: 0, dram: 0, power: 0, rx: 0.4, tx: 0.6 }

export function activityAt(plan: GpuPlan, seconds: number): Activity {
  const job = jobAt(plan, seconds)
  const phase = job === null ? 'idle' : phaseAt(job, seconds)
  const own = job === null ? NO_LOAD : loadOf(job, phase, seconds)
  const tenants: Tenant[] = []
  if (job !== null)
    tenants.push({ pid: job.pid, memoryBytes: CONTEXT_BYTES + jobMemory(job, seconds).reservedBytes, smRatio: own.utilization * 0.98 })
  const intruder = intruderAt(plan, job, seconds)
  if (intruder !== null) tenants.push(intruder)
  const foreign = intruder?.smRatio ?? 0
  return {
    job,
    phase,
    tenants,
    utilization: clamp(own.utilization * (1 - 0.3 * foreign) + foreign, 0, 1),
    tensor: clamp(own.tensor * (1 - 0.7 * foreign), 0, 1),
    dram: clamp(own.dram + 0.2 * foreign, 0, 1),
    power: clamp(own.power + 0.25 * foreign, 0, 0.96),
    pcieRxBytesPerSecond: own.rx * MEBIBYTE,
    pcieTxBytesPerSecond: own.tx * MEBIBYTE,
  }
}

function loadOf(job: Job, phase: Phase | 'idle', seconds: number): Load {
  const { plan } = job
  const { workload, seed, gpu } = plan
  const slow = 1 + 0.015 * drift(seed, gpu + 200, seconds, 7)
  const quick = hash(seed, gpu + 300, Math.floor(seconds * 5)) - 0.5
  switch (phase) {
    case 'loading': {
      const age = seconds - job.start
      const busy = age < 2 ? 0 : clamp((age - 2) / 12, 0.03, 0.6)
      return { utilization: busy, tensor: busy * 0.2, dram: busy * 0.3, power: 0.06 + busy * 0.3, rx: age < 2 ? 40 : 9500, tx: 25 }
    }
    case 'training': {
      // The last part of a step is the optimizer's and the next batch's: the tensor cores rest.
      const position = (trainedSeconds(job, seconds) / workload.stepSeconds) % 1
      const tail = position > 0.86
      const waits = plan.trouble === 'straggler' && !isStraggler(plan) && isWrong(job, seconds) ? 0.75 : 1
      return {
        utilization: workload.utilization * slow - (tail ? 0.12 : 0) + 0.04 * quick,
        tensor: workload.tensor * slow * (tail ? 0.25 : 1) + 0.03 * quick,
        dram: workload.dram * slow * (tail ? 1.2 : 1) + 0.03 * quick,
        power: workload.powerShare * slow * waits * (tail ? 0.82 : 1) + 0.05 * quick,
        rx: (60 + 0.9 * workload.batch * speedAt(job, seconds)) * (1 + 0.4 * quick),
        tx: 22 * (1 + 0.6 * quick),
      }
    }
    case 'evaluating':
      return {
        utilization: 0.83 * slow + 0.08 * quick,
        tensor: workload.tensor * 0.45 + 0.03 * quick,
        dram: workload.dram * 0.9 + 0.03 * quick,
        power: workload.powerShare * 0.72 + 0.05 * quick,
        rx: 180 * (1 + 0.5 * quick),
        tx: 30,
      }
    case 'saving':
      return { utilization: 0.02 + 0.02 * quick, tensor: 0, dram: 0.03, power: 0.1, rx: 4, tx: 5200 * (1 + 0.3 * quick) }
    default:
      // It holds its memory and keeps the clocks up, but nothing runs.
      return { utilization: 0, tensor: 0, dram: 0, power: 0.07, rx: 0.3, tx: 0.5 }
  }
}

function intruderAt(plan: GpuPlan, job: Job | null, seconds: number): Tenant | null {
  const intruder = intruderOf(job, seconds)
  if (intruder === null) return null
  const age = seconds - intruder.since
  // Its context first, then all that it wants, at once.
  const share = age < 1 ? 0.012 : 0.12
  return {
    pid: intruder.pid,
    memoryBytes: Math.round((share * cardOf(plan.gpu).memoryBytes) / MEBIBYTE) * MEBIBYTE,
    smRatio: age < 1 ? 0 : clamp(0.42 + 0.05 * drift(plan.seed, plan.gpu + 400, seconds, 3), 0, 1),
  }
}
