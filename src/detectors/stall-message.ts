/** The findings about a run or a GPU that has stalled. */
import { formatBytes, formatDuration } from '../core/format.ts'
import type { Reading, Severity } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'
import { median } from './rolling-median.ts'
import type { GpuPace } from './stall-gpu.ts'
import type { Pace } from './stall-steps.ts'
import { evidenceNumber } from './words.ts'

/** Most harmless pauses are over by then. */
const UNSURE_MS = 120_000

/** `excuse`: what the run may be doing instead of hanging, or null. `left`: its processes that are still there. */
export function runDraft(
  run: Pace,
  at: number,
  utilizationRatio: Reading,
  silentMs: number,
  left: number,
  excuse: string | null,
): FindingDraft {
  const usualMs = median(run.gaps)
  const isFirst = excuse === null && run.pauses.length === 0 && silentMs < UNSURE_MS
  const doubt = isFirst ? ' This is its first pause: slow data or an upload looks the same at first.' : ''
  const silence = `no step for ${formatDuration(silentMs)} after step ${run.lastStep}, usually one every ${formatDuration(usualMs)}`
  return {
    severity: excuse === null ? 'warning' : 'info',
    since: at - silentMs,
    message: `Run ${run.run} ${excuse ?? 'has stalled'}: ${silence}.${doubt}`,
    evidence: {
      silent_seconds: Math.round(silentMs / 10) / 100,
      usual_step_seconds: evidenceNumber(usualMs / 1000),
      last_step: run.lastStep,
      utilization_ratio: utilizationRatio,
      processes_left: run.pids.length === 0 ? null : left,
      processes_before: run.pids.length,
    },
    confidence: excuse !== null ? 0.5 : (run.pids.length === 0 ? 0.7 : 0.9) - (isFirst ? 0.15 : 0),
    advice: [
      'See where it hangs: py-spy dump --pid PID. A collective that waits for a lost rank looks like this.',
      'Harmless causes: a slow disk, a data loader without workers, a long checkpoint.',
    ],
  }
}

export function gpuDraft(
  label: string,
  state: GpuPace,
  severity: Severity,
  at: number,
  quietMs: number,
  memoryBytes: number,
): FindingDraft {
  const holder = state.pid === null ? '' : ` by process ${state.pid}`
  return {
    severity,
    since: at - quietMs,
    message: `GPU ${label} has been idle for ${formatDuration(quietMs)} after ${formatDuration(state.busyMs)} of work; ${formatBytes(memoryBytes)} still held${holder}.`,
    evidence: {
      quiet_seconds: Math.round(quietMs / 100) / 10,
      busy_seconds: Math.round(state.busyMs / 100) / 10,
      longest_pause_seconds: Math.round(state.longestPauseMs / 100) / 10,
      memory_used_bytes: memoryBytes,
    },
    confidence: severity === 'warning' ? 0.7 : 0.5,
    advice: ['If it is a training run, see where it hangs (py-spy dump). With the SDK a stall is seen at once.'],
  }
}
