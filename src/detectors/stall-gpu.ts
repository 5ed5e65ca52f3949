/** A stall seen from the GPU only: it worked hard for a while, then not at all, for longer than ever before. */
import type { GpuSample, ProcessView, Severity } from '../core/model.ts'
import type { Thresholds } from './thresholds.ts'

export interface GpuPace {
  /** The process with the most memory; another one starts again. */
  pid: number | null
  busyMs: number
  /** Observed ms of the last work; -1: none yet. */
  workedMs: number
  longestPauseMs: number
  lastMs: number
  said: Severity | null
}

const HELD_BYTES = 1024 ** 3

export function gpuPace(): GpuPace {
  return { pid: null, busyMs: 0, workedMs: -1, longestPauseMs: 0, lastMs: 0, said: null }
}

export function largest(processes: readonly ProcessView[]): ProcessView | null {
  let best: ProcessView | null = null
  for (const process of processes) if (best === null || (process.memoryUsedBytes ?? 0) > (best.memoryUsedBytes ?? 0)) best = process
  return best
}

/** How severe the idleness is now, or null. */
export function quietness(
  state: GpuPace,
  sample: GpuSample,
  holder: ProcessView | null,
  nowMs: number,
  options: Thresholds<'stall'>,
): Severity | null {
  const passed = nowMs - state.lastMs
  state.lastMs = nowMs
  const work = sample.utilizationRatio
  const pid = holder?.pid ?? null
  const memoryBytes = holder ? holder.memoryUsedBytes : sample.memoryUsedBytes
  const gone = sample.processes !== null && pid === null
  if (gone || pid !== state.pid) {
    state.pid = pid
    state.busyMs = 0
    state.workedMs = -1
    state.longestPauseMs = 0
    if (gone) return null
  }
  if (work === null) return null
  if (work > 0) {
    if (work >= options.busyRatio) state.busyMs += passed
    if (state.workedMs >= 0) state.longestPauseMs = Math.max(state.longestPauseMs, nowMs - passed - state.workedMs)
    state.workedMs = nowMs
    return null
  }
  if (state.workedMs < 0 || memoryBytes === null || memoryBytes < HELD_BYTES) return null
  const quietMs = nowMs - state.workedMs
  const unusual = quietMs >= options.longestPauseFactor * state.longestPauseMs
  if (!unusual || state.busyMs < options.busySeconds * 1000 || quietMs < options.quietSeconds * 1000) return null
  return state.busyMs >= options.certainBusySeconds * 1000 && quietMs >= options.certainQuietSeconds * 1000 ? 'warning' : 'info'
}
