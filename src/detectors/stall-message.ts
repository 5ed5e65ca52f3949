/** The findings about a run or a GPU that has stalled. */
import { formatBytes, formatDuration } from '../core/format.ts'
import type { Reading, RunHang, Severity } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'
import { median } from './rolling-median.ts'
import type { GpuPace } from './stall-gpu.ts'
import type { Pace } from './stall-steps.ts'
import { evidenceNumber } from './words.ts'

/** Most harmless pauses are over by then. */
const UNSURE_MS = 120_000

export interface StalledRun {
  readonly run: Pace
  readonly at: number
  readonly utilizationRatio: Reading
  readonly silentMs: number
  /** Its processes that are still there. */
  readonly left: number
  /** What it may be doing instead of hanging, or null. */
  readonly excuse: string | null
  /** Who holds it up; null: unknown. */
  readonly hang: RunHang | null
}

export function runDraft({ run, at, utilizationRatio, silentMs, left, excuse, hang }: StalledRun): FindingDraft {
  const usualMs = median(run.gaps)
  const isFirst = excuse === null && hang === null && run.pauses.length === 0 && silentMs < UNSURE_MS
  const doubt = isFirst ? ' This is its first pause: slow data or an upload looks the same at first.' : ''
  const silence = `step for ${formatDuration(silentMs)} after step ${run.lastStep}, usually one every ${formatDuration(usualMs)}`
  return {
    severity: excuse === null ? 'warning' : 'info',
    since: at - silentMs,
    message: `Run ${run.run} ${stateText(excuse, hang)} ${silence}.${doubt}`,
    evidence: {
      silent_seconds: Math.round(silentMs / 10) / 100,
      usual_step_seconds: evidenceNumber(usualMs / 1000),
      last_step: run.lastStep,
      utilization_ratio: utilizationRatio,
      processes_left: run.pids.length === 0 ? null : left,
      processes_before: run.pids.length,
      ...(hang === null ? {} : hangEvidence(hang)),
    },
    confidence: excuse !== null ? 0.5 : (run.pids.length === 0 ? 0.7 : 0.9) - (isFirst ? 0.15 : 0),
    advice: [
      hang === null
        ? `See where it hangs: gpuwarden stacks ${run.run}. A collective that waits for a lost rank looks like this.`
        : `See all stacks: gpuwarden stacks ${run.run}`,
      'Harmless causes: a slow disk, a data loader without workers, a long checkpoint.',
    ],
  }
}

function stateText(excuse: string | null, hang: RunHang | null): string {
  return hang === null ? `${excuse ?? 'has stalled'}: no` : `${excuse ?? 'stands still'}: ${hang.sentence}. No`
}

/** Where it stands; of a process that is gone or silent, all that is known. */
export function placeText({ place, sentence }: RunHang): string {
  return place ?? sentence
}

function hangEvidence(hang: RunHang): FindingDraft['evidence'] {
  const { culprits, waiting } = hang
  return {
    place: placeText(hang),
    culprit_ranks: culprits.length === 0 ? null : culprits.slice(0, 16).join(', '),
    waiting_ranks: waiting.length,
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
