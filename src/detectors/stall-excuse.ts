/** What a run without steps may be doing instead of hanging. */
import { formatDuration, formatPercent } from '../core/format.ts'
import { atRoundNumber, longestPause, type Pace } from './stall-steps.ts'
import type { Thresholds } from './thresholds.ts'

/** Times are observed ms. */
export interface Silence {
  readonly run: Pace
  readonly nowMs: number
  readonly silentMs: number
  readonly limitMs: number
  /** When its GPUs last worked without a step, and when one last sent much to the host. */
  readonly workedMs: number
  readonly copiedMs: number
  /** The ranks were asked: nobody moves, saves or compiles. */
  readonly isStuck: boolean
  /** CPU cores that its processes use meanwhile; 0 when unknown. */
  readonly cores: number
}

/** A process that waits (lock, network, another rank) uses almost no CPU. */
const WORKING_CORES = 0.5
/** A pause may repeat, and take this much longer. */
const AGAIN_FACTOR = 1.5

/** Continues a sentence after the run's name; null when everything points to a hang. */
export function excuseOf(silence: Silence, options: Thresholds<'stall'>): string | null {
  const { run, nowMs, silentMs, limitMs, workedMs, copiedMs, cores, isStuck } = silence
  // A collective that waits for a rank keeps a GPU as busy as an evaluation does.
  if (!isStuck && nowMs - workedMs <= limitMs && silentMs < options.evaluationSeconds * 1000)
    return 'makes no steps while its GPU keeps working, as in an evaluation'
  if (copiedMs > run.progressMs && nowMs - copiedMs < options.checkpointSeconds * 1000)
    return 'has made no steps since its GPU sent much data to the host, as for a checkpoint'
  const longest = longestPause(run)
  if (silentMs < AGAIN_FACTOR * longest) return `makes no steps; an earlier pause lasted ${formatDuration(longest)}`
  if (isStuck || silentMs >= options.pauseSeconds * 1000) return null
  if (cores >= WORKING_CORES)
    return `makes no steps while its process works on the host (${formatPercent(cores)} of a core), as for a checkpoint`
  if (run.epochEnds) return 'pauses at the end of an epoch, as for an evaluation or a checkpoint'
  return atRoundNumber(run) ? `pauses after step ${run.lastStep}, a round number, as for an evaluation or a checkpoint` : null
}
