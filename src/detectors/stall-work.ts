/**
 * What a GPU does while its run makes no steps. Works it as it does between steps, the run evaluates; did it send much to the host,
 * a checkpoint is being written. Neither is a run that hangs.
 */
import type { GpuSample, ProcessView, Reading } from '../core/model.ts'

export interface Work {
  /** Utilisation as last read. */
  now: Reading
  /** The level while steps come: a mean over the last half minute. */
  ratio: Reading
  watts: Reading
  sentBytesPerSecond: Reading
  /** Observed ms of the last sample, and of the last one at that level; -1: none. */
  lastMs: number
  workedMs: number
  /** Observed ms of the last moment at which it sent much more than usual; -1: none. */
  copiedMs: number
  /** Cores that its busiest process uses, and from when to when, in observed ms, that was measured. */
  cores: Reading
  coresFromMs: number
  coresMs: number
}

const MEMORY_MS = 30_000
/** Below this a GPU does nothing that could be missed. */
const BUSY_RATIO = 0.1
const SHARE = 0.5
/** A copy of the state to the host: so much a second, and so many times what steps send. */
const COPY_BYTES_PER_SECOND = 200 * 1024 ** 2
const COPY_FACTOR = 10
/** What a process uses of the host is read every few seconds; later it tells of the past. */
const CORES_KEPT_MS = 15_000

export function work(): Work {
  return {
    now: null,
    ratio: null,
    watts: null,
    sentBytesPerSecond: null,
    lastMs: -1,
    workedMs: -1,
    copiedMs: -1,
    cores: null,
    coresFromMs: -1,
    coresMs: -1,
  }
}

/** A collective that waits shows full use at little power, so both have to be there. */
export function noteWork(state: Work, sample: GpuSample, nowMs: number, isStepping: boolean): void {
  const { utilizationRatio, powerWatts, pcieTxBytesPerSecond: sent } = sample
  const isCopy = sent !== null && sent >= Math.max(COPY_BYTES_PER_SECOND, COPY_FACTOR * (state.sentBytesPerSecond ?? sent))
  if (isCopy) state.copiedMs = nowMs
  state.now = utilizationRatio
  if (utilizationRatio === null) return
  if (isStepping) {
    const weight = state.lastMs < 0 ? 1 : Math.min(1, (nowMs - state.lastMs) / MEMORY_MS)
    state.ratio = mean(state.ratio, utilizationRatio, weight)
    if (powerWatts !== null) state.watts = mean(state.watts, powerWatts, weight)
    if (sent !== null && !isCopy) state.sentBytesPerSecond = mean(state.sentBytesPerSecond, sent, weight)
  }
  state.lastMs = nowMs
  if (!isBusy(state) || utilizationRatio < SHARE * (state.ratio ?? 0)) return
  if (state.watts === null || powerWatts === null || powerWatts >= SHARE * state.watts) state.workedMs = nowMs
}

/** Whether its silence would tell anything. */
export function isBusy(state: Work): boolean {
  return state.ratio !== null && state.ratio >= BUSY_RATIO
}

function mean(before: Reading, value: number, weight: number): number {
  return before === null ? value : before + weight * (value - before)
}

/** The figure is a mean since the reading before, and stays until the next: a new one is known by its being different. */
export function noteCores(state: Work, processes: readonly ProcessView[], nowMs: number): void {
  let most: Reading = null
  for (const { info } of processes) if (info !== null && info.cpuRatio !== null && info.cpuRatio > (most ?? -1)) most = info.cpuRatio
  if (most === state.cores) return
  state.cores = most
  state.coresFromMs = state.coresMs
  state.coresMs = nowMs
}

/**
 * Cores in use while the GPU rests, measured wholly after a moment and not long ago; 0 when there is no such reading.
 * While the GPU is busy a process may do no more than wait for it: that takes a whole core, too.
 */
export function coresSince(state: Work, sinceMs: number, nowMs: number): number {
  if (state.now === null || state.now >= BUSY_RATIO) return 0
  return state.coresFromMs >= sinceMs && nowMs - state.coresMs <= CORES_KEPT_MS ? (state.cores ?? 0) : 0
}
