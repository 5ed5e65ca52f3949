/** The memory of a training job: what its allocator holds, and what the driver sees of it. */
import { cardOf } from './cards.ts'
import { isFilling, type Job, phaseAt } from './jobs.ts'
import { clamp, hash } from './noise.ts'

const MEBIBYTE = 1024 * 1024
/** CUDA context and libraries. */
export const CONTEXT_BYTES = 520 * MEBIBYTE
/** The allocator asks the driver for pieces of this size. */
const SEGMENT_BYTES = 20 * MEBIBYTE
/** A job that grows dies when no more than this is free. */
const LAST_FREE_BYTES = 180 * MEBIBYTE

/** Seconds after the start, and the share of the full size from then on: a context, weights, the first step, then larger batches. */
const STAIRS: readonly (readonly [number, number])[] = [
  [1, 0.02],
  [1.6, 0.58],
  [9.5, 0.91],
  [12, 0.97],
  [16, 1],
]

export interface JobMemory {
  readonly reservedBytes: number
  readonly allocatedBytes: number
  readonly peakAllocatedBytes: number
  readonly inactiveSplitBytes: number
  readonly allocRetries: number
}

export function jobMemory(job: Job, seconds: number): JobMemory {
  const { plan } = job
  const card = cardOf(plan.gpu)
  const room = card.memoryBytes - card.driverBytes - CONTEXT_BYTES - LAST_FREE_BYTES
  const full = card.memoryBytes * plan.workload.memoryShare * (0.97 + 0.06 * hash(plan.seed, plan.gpu, 5))
  const warm = full * stair(seconds - job.start)
  const growth = (room - full) * grown(job, seconds)
  const evaluation = phaseAt(job, seconds) === 'evaluating' ? 0.07 * card.memoryBytes : 0
  const reserved = segments(warm + growth + evaluation)
  const fill = reserved / room
  return {
    reservedBytes: Math.min(reserved, Math.floor(room)),
    allocatedBytes: Math.round(warm * 0.56 + growth),
    peakAllocatedBytes: Math.round(Math.min(warm * 0.94 + growth, room)),
    inactiveSplitBytes: Math.round(warm * 0.035),
    allocRetries: growth > 0 ? Math.max(0, Math.floor((fill - 0.95) * 200)) : 0,
  }
}

function stair(age: number): number {
  let share = 0
  for (const [from, height] of STAIRS) if (age >= from) share = height
  return share
}

/** How much of the free memory a leaking job has eaten, 0–1. */
function grown(job: Job, seconds: number): number {
  const { wrong, plan } = job
  if (wrong === null || !isFilling(plan.trouble)) return 0
  const share = clamp((seconds - wrong.from) / (wrong.to - wrong.from), 0, 1)
  return plan.trouble === 'oom' ? share ** 1.25 : share
}

function segments(bytes: number): number {
  return Math.ceil(bytes / SEGMENT_BYTES) * SEGMENT_BYTES
}
