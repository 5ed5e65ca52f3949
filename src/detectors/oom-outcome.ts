/** How a forecast ended: it came true, it did not happen, or nobody knows. */
import { formatClock, formatDuration } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import type { FindingEnd } from './finding.ts'

/** `outcome`: came_true, did_not_happen, or unknown. */
const NOBODY_KNOWS = { outcome: 'unknown', error_seconds: null, lead_seconds: null }

/** When memory was this full as all processes ended, it was the reason. */
const FULL_RATIO = 0.95

export function atEndOfRun(forecast: Finding, endedAt: number, isOutOfMemory: boolean): FindingEnd {
  if (isOutOfMemory) return cameTrue(forecast, endedAt, 'Came true')
  return { message: 'The run ended before it could happen.', evidence: NOBODY_KNOWS }
}

/** All processes left the GPU without a reason. `level`: the last that was seen of the memory. */
export function atEndOfProcesses(forecast: Finding, at: number, level: number): FindingEnd {
  const isDue = at >= (forecast.predictedEarliestAt ?? Number.POSITIVE_INFINITY)
  if (isDue && level >= FULL_RATIO) return cameTrue(forecast, at, 'Came true: all processes ended with memory full')
  return { message: 'All processes on the GPU have ended.', evidence: NOBODY_KNOWS }
}

export function notAnyMore(name: string): FindingEnd {
  const message = `Did not happen: memory of ${name} stopped growing toward the limit.`
  return { message, evidence: { ...NOBODY_KNOWS, outcome: 'did_not_happen' } }
}

function cameTrue({ predictedAt, since }: Finding, at: number, words: string): FindingEnd {
  const errorMs = predictedAt === null ? null : at - predictedAt
  const late =
    errorMs === null
      ? ''
      : Math.abs(errorMs) < 1000
        ? ', as forecast'
        : `, ${formatDuration(Math.abs(errorMs))} ${errorMs > 0 ? 'later' : 'earlier'} than forecast`
  return {
    message: `${words} at ${formatClock(at, at)}${late}.`,
    evidence: {
      outcome: 'came_true',
      error_seconds: errorMs === null ? null : Math.round(errorMs / 1000),
      lead_seconds: Math.round((at - since) / 1000),
    },
  }
}
