/** What a GPU does while its run makes no steps. If it keeps working, the run evaluates; if it sent much to the host, it saves a checkpoint. */
import type { GpuSample, ProcessView, Reading } from '../core/model.ts'

export interface Work {
  /** Last utilization. */
  now: Reading
  /** Mean over the last half minute with steps. */
  ratio: Reading
  watts: Reading
  /** Share of time that the memory was busy; absent in what an earlier version saved. */
  memoryRatio?: Reading
  sentBytesPerSecond: Reading
  /** Observed ms of the last sample, and of the last one at that level; -1: none yet. */
  lastMs: number
  workedMs: number
  /** Observed ms when it last sent much more than usual; -1: never. */
  copiedMs: number
  /** CPU cores of its busiest process, and the interval (observed ms) in which that was measured. */
  cores: Reading
  coresFromMs: number
  coresMs: number
}

const MEMORY_MS = 30_000
/** Below this a GPU is idle. */
const BUSY_RATIO = 0.1
const SHARE = 0.5
/** Steps that keep the memory this busy tell a kernel that only waits: it reads next to nothing. */
const READ_RATIO = 0.05
const SPIN_SHARE = 0.1
/** A copy of the state to the host sends this much, and this many times what steps send. */
const COPY_BYTES_PER_SECOND = 200 * 1024 ** 2
const COPY_FACTOR = 10
/** CPU use is read every few seconds; older readings are out of date. */
const CORES_KEPT_MS = 15_000

export function work(): Work {
  return {
    now: null,
    ratio: null,
    watts: null,
    memoryRatio: null,
    sentBytesPerSecond: null,
    lastMs: -1,
    workedMs: -1,
    copiedMs: -1,
    cores: null,
    coresFromMs: -1,
    coresMs: -1,
  }
}

/** A waiting collective shows full utilization, but at low power or without touching memory: all must be high. */
export function noteWork(state: Work, sample: GpuSample, nowMs: number, isStepping: boolean): void {
  const { utilizationRatio, powerWatts, memoryUtilizationRatio: memory, pcieTxBytesPerSecond: sent } = sample
  const isCopy = sent !== null && sent >= Math.max(COPY_BYTES_PER_SECOND, COPY_FACTOR * (state.sentBytesPerSecond ?? sent))
  if (isCopy) state.copiedMs = nowMs
  state.now = utilizationRatio
  if (utilizationRatio === null) return
  if (isStepping) {
    const weight = state.lastMs < 0 ? 1 : Math.min(1, (nowMs - state.lastMs) / MEMORY_MS)
    state.ratio = mean(state.ratio, utilizationRatio, weight)
    if (powerWatts !== null) state.watts = mean(state.watts, powerWatts, weight)
    if (memory !== null) state.memoryRatio = mean(state.memoryRatio ?? null, memory, weight)
    if (sent !== null && !isCopy) state.sentBytesPerSecond = mean(state.sentBytesPerSecond, sent, weight)
  }
  state.lastMs = nowMs
  if (!isBusy(state) || utilizationRatio < SHARE * (state.ratio ?? 0)) return
  if (state.watts != null && powerWatts !== null && powerWatts < SHARE * state.watts) return
  const usual = state.memoryRatio ?? 0
  if (memory !== null && usual >= READ_RATIO && memory < SPIN_SHARE * usual) return
  state.workedMs = nowMs
}

/** Whether its silence would mean anything. */
export function isBusy(state: Work): boolean {
  return state.ratio !== null && state.ratio >= BUSY_RATIO
}

function mean(before: Reading, value: number, weight: number): number {
  return before === null ? value : before + weight * (value - before)
}

/** The reading is a mean since the one before and stays until the next: only a different value is a new one. */
export function noteCores(state: Work, processes: readonly ProcessView[], nowMs: number): void {
  let most: Reading = null
  for (const { info } of processes) if (info !== null && info.cpuRatio !== null && info.cpuRatio > (most ?? -1)) most = info.cpuRatio
  if (most === state.cores) return
  state.cores = most
  state.coresFromMs = state.coresMs
  state.coresMs = nowMs
}

/** Cores in use while the GPU idles, measured after `sinceMs`; 0: unknown. Waiting for a busy GPU takes a whole core, so that does not count. */
export function coresSince(state: Work, sinceMs: number, nowMs: number): number {
  if (state.now === null || state.now >= BUSY_RATIO) return 0
  return state.coresFromMs >= sinceMs && nowMs - state.coresMs <= CORES_KEPT_MS ? (state.cores ?? 0) : 0
}
