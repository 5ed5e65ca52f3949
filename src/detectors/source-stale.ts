/** A source that calls itself well and sends nothing. What is known to be wrong with one is driver_stuck's to say. */
import { formatDuration } from '../core/format.ts'
import type { Detector, DetectorKind } from '../core/kinds.ts'
import type { Finding, SourceHealth } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS } from './thresholds.ts'

export interface SourceStaleOptions {
  /** Seconds without a sample after which it is reported, and below which it is over. */
  readonly staleSeconds: number
  readonly clearSeconds: number
}

/** A source that is read once an hour is not stale after a minute. */
const INTERVALS = 5

export const sourceStale: DetectorKind<SourceStaleOptions> = {
  name: 'source_stale',
  about: 'A source says that it is well, but has sent no sample for a minute and five of its intervals.',
  severities: ['warning'],
  inputs: ['health'],
  patienceSeconds: 30,
  defaults: THRESHOLDS.sourceStale,
  create: (options) => createSourceStale(options),
}

function createSourceStale({ staleSeconds, clearSeconds }: SourceStaleOptions): Detector {
  const book = new FindingBook('source_stale')
  const subject = subjectOf({})

  function look(health: SourceHealth, at: number): readonly Finding[] {
    const { source, state, lastSampleAt, since, intervalMs, deadlineMs } = health
    const part = `source=${source}`
    const key = book.key(subject, part)
    const isWell = (state === 'ok' || state === 'starting') && health.provenance !== 'replay'
    if (!isWell) return book.resolve(key, at, `The ${source} source no longer says that it is well.`)
    const silentMs = at - (lastSampleAt ?? since)
    const limit = book.has(key) ? Math.min(clearSeconds, staleSeconds) : staleSeconds
    if (silentMs <= INTERVALS * intervalMs + deadlineMs || silentMs < limit * 1000)
      return book.resolve(key, at, `The ${source} source sends samples again.`)
    if (!book.due(key, at, 'warning')) return NO_FINDINGS
    return book.raise(
      subject,
      at,
      {
        severity: 'warning',
        message: `The ${source} source says that it is ${state === 'ok' ? 'well' : 'starting'}, but has not sent a sample for ${formatDuration(silentMs)}.`,
        evidence: { source, state, silent_seconds: Math.round(silentMs / 1000), last_sample_at: lastSampleAt, threshold: staleSeconds },
        confidence: 1,
        advice: ['Look at the agent log, and run gpuwarden doctor.'],
      },
      part,
    )
  }

  return {
    accept: (input) => (input.type === 'health' ? look(input.health, input.at) : NO_FINDINGS),
    snapshot: () => book.snapshot(),
    restore: (state) => book.restore(state),
  }
}
