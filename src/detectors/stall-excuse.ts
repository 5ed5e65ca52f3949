/** What a run without steps may be at instead of hanging. */
import { formatDuration, formatPercent } from '../core/format.ts'
import { atRoundNumber, longestPause, type Pace } from './stall-steps.ts'

export interface ExcuseOptions {
  /** A GPU that works on without steps evaluates, for so long. */
  readonly evaluationSeconds: number
  /** So long a checkpoint may take after the GPU has sent it to the host. */
  readonly checkpointSeconds: number
  /** So long a run may pause at the end of an epoch or at a round step, or while its process works on the host. */
  readonly pauseSeconds: number
}

/** Times are observed ms. */
export interface Silence {
  readonly run: Pace
  readonly nowMs: number
  readonly silentMs: number
  readonly limitMs: number
  /** The last moment at which its GPUs worked without a step, and at which one sent much to the host. */
  readonly workedMs: number
  readonly copiedMs: number
  /** Cores that its processes use in this silence; 0 when that is not known. */
  readonly cores: number
}

/** A process that waits, for a lock, the network or another rank, uses hardly any of its core. */
const WORKING_CORES = 0.5
/** What happened once may happen again, and take this much longer. */
const AGAIN_FACTOR = 1.5

/** In words that go on from the run's name; null when nothing points to anything but a hang. */
export function excuseOf(silence: Silence, options: ExcuseOptions): string | null {
  const { run, nowMs, silentMs, limitMs, workedMs, copiedMs, cores } = silence
  if (nowMs - workedMs <= limitMs && silentMs < options.evaluationSeconds * 1000)
    return 'makes no steps while its GPU works on, as in an evaluation'
  if (copiedMs > run.progressMs && nowMs - copiedMs < options.checkpointSeconds * 1000)
    return 'makes no steps since its GPU has sent much to the host, as for a checkpoint'
  const longest = longestPause(run)
  if (silentMs < AGAIN_FACTOR * longest) return `makes no steps, as before, when it went on after ${formatDuration(longest)}`
  if (silentMs >= options.pauseSeconds * 1000) return null
  if (cores >= WORKING_CORES)
    return `makes no steps while its process works on the host (${formatPercent(cores)} of a core), as for a checkpoint`
  if (run.epochEnds) return 'pauses at the end of an epoch, as for an evaluation or a checkpoint'
  return atRoundNumber(run) ? `pauses after step ${run.lastStep}, a round number, as for an evaluation or a checkpoint` : null
}
