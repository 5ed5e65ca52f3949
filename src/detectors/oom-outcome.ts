/** What became of a forecast: it came true, it did not happen, or nobody can tell. */
import { formatClock } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import type { FindingEnd } from './finding.ts'
import { duration } from './words.ts'

/** `outcome`: came_true, did_not_happen, or unknown. */
const NOBODY_KNOWS = { outcome: 'unknown', error_seconds: null, lead_seconds: null }

/** Memory this full when everybody is gone was the reason why. */
const FULL_RATIO = 0.95

/** The run ended at that time, out of memory or otherwise. */
export function atEndOfRun(forecast: Finding, endedAt: number, isOutOfMemory: boolean): FindingEnd {
  if (isOutOfMemory) return cameTrue(forecast, endedAt, 'Came true')
  return { message: 'The run ended before it could happen.', evidence: NOBODY_KNOWS }
}

/** Every process left the GPU, and none of them told why. */
export function atEndOfProcesses(forecast: Finding, at: number): FindingEnd {
  const level = forecast.evidence.levelRatio
  const isDue = at >= (forecast.predictedEarliestAt ?? Number.POSITIVE_INFINITY)
  if (isDue && typeof level === 'number' && level >= FULL_RATIO)
    return cameTrue(forecast, at, 'Every process ended with memory full: came true')
  return {
    message: 'Every process that used the GPU has ended.',
    evidence: NOBODY_KNOWS,
  }
}

export function notAnyMore(name: string): FindingEnd {
  const message = `Did not happen: ${name} no longer heads for its limit.`
  return { message, evidence: { ...NOBODY_KNOWS, outcome: 'did_not_happen' } }
}

function cameTrue({ predictedAt, since }: Finding, at: number, words: string): FindingEnd {
  const errorMs = predictedAt === null ? null : at - predictedAt
  const late =
    errorMs === null
      ? ''
      : Math.abs(errorMs) < 1000
        ? ', as forecast'
        : `, ${duration(Math.abs(errorMs))} ${errorMs > 0 ? 'later' : 'earlier'} than forecast`
  return {
    message: `${words} at ${formatClock(at, at)}${late}.`,
    evidence: {
      outcome: 'came_true',
      error_seconds: errorMs === null ? null : Math.round(errorMs / 1000),
      lead_seconds: Math.round((at - since) / 1000),
    },
  }
}
