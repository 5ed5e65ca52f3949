/** Which GPUs and processes belong to a run, and what they do while it makes no steps. Times are observed ms. */
import type { ProcessView, Reading } from '../core/model.ts'
import type { GpuPace } from './stall-gpu.ts'
import type { Pace } from './stall-steps.ts'
import { isBusy, type Work } from './stall-work.ts'

export interface WatchedGpu {
  readonly id: string
  label: string
  index: number | null
  readonly pace: GpuPace
  readonly work: Work
  /** Those that hold enough memory to count. */
  pids: number[]
  seenMs: number
  memoryUsedBytes: Reading
}

type Gpus = Iterable<WatchedGpu>

const PID_CAP = 64
/** A driver's utilization is a mean over up to a second: for that long it may still show the last step. */
const LAG_MS = 1000
/** A process with less is about to end, or does not compute. */
const HELD_BYTES = 256 * 1024 * 1024
/** A GPU without a sample for this many intervals is not waited for. */
const MISSING_INTERVALS = 3

/** True when the processes on the GPU have changed. */
export function notePids(gpu: WatchedGpu, processes: readonly ProcessView[]): boolean {
  let count = 0
  let same = true
  for (const process of processes) {
    if (!isHolding(process)) continue
    if (gpu.pids[count] !== process.pid) same = false
    count++
  }
  if (same && count === gpu.pids.length) return false
  gpu.pids = processes
    .filter(isHolding)
    .slice(0, PID_CAP)
    .map((process) => process.pid)
  return true
}

function isHolding({ memoryUsedBytes }: ProcessView): boolean {
  return memoryUsedBytes === null || memoryUsedBytes >= HELD_BYTES
}

/** Processes on the run's own GPUs, or its own process; all processes where it reported neither. */
export function ownPids(run: Pace, gpus: { has(id: string): boolean; values(): Gpus }): number[] {
  const pids: number[] = []
  const isAnyKnown = run.gpus.some((id) => gpus.has(id))
  for (const gpu of gpus.values()) if (!isAnyKnown || run.gpus.includes(gpu.id)) pids.push(...gpu.pids)
  if (run.pid !== null && !run.hasRanks && pids.includes(run.pid)) return [run.pid]
  return pids.slice(0, PID_CAP)
}

/** Where the run's GPUs are unknown, any GPU with one of its processes counts. */
export function isUsedBy(gpu: WatchedGpu, run: Pace): boolean {
  if (run.gpus.length > 0) return run.gpus.includes(gpu.id)
  return run.pids.length === 0 || gpu.pids.some((pid) => run.pids.includes(pid))
}

export function countLeft(run: Pace, gpus: Gpus): number {
  let left = 0
  for (const gpu of gpus) for (const pid of gpu.pids) if (run.pids.includes(pid)) left++
  return left
}

/** Inside a container the driver may list no processes; then memory in use shows whether any is there. */
export function isAnyMemoryHeld(gpus: Gpus): boolean {
  for (const gpu of gpus) if (gpu.memoryUsedBytes === null || gpu.memoryUsedBytes >= HELD_BYTES) return true
  return false
}

/** When all GPUs of the run last worked without a step; -Infinity: never. */
export function lastWorked(run: Pace, gpus: Gpus): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const gpu of gpus) if (isBusy(gpu.work) && isUsedBy(gpu, run)) earliest = Math.min(earliest, gpu.work.workedMs)
  return Number.isFinite(earliest) && earliest > run.progressMs + LAG_MS ? earliest : Number.NEGATIVE_INFINITY
}

/** Whether every GPU on which a process of the run is left has worked since `sinceMs`. */
export function areLeftAtWork(run: Pace, gpus: Gpus, sinceMs: number): boolean {
  for (const { pids, work } of gpus) {
    if (!pids.some((pid) => run.pids.includes(pid))) continue
    if (!isBusy(work) || work.workedMs <= run.progressMs + LAG_MS || work.workedMs < sinceMs) return false
  }
  return true
}

/** GPUs are sampled in turn: on one that is still to come, the process may be gone already. */
export function awaitsSample(run: Pace, gpus: Gpus, sinceMs: number, nowMs: number, intervalMs: number): boolean {
  for (const gpu of gpus)
    if (gpu.seenMs < sinceMs && nowMs - gpu.seenMs <= MISSING_INTERVALS * intervalMs && isUsedBy(gpu, run)) return true
  return false
}
