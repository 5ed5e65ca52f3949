/** A source that calls itself well and sends nothing. What is known to be wrong with one is driver_stuck's to say. */
import { formatDuration } from '../core/format.ts'
import type { Detector, DetectorKind } from '../core/kinds.ts'
import type { Finding, SourceHealth } from '../core/model.ts'
import { BoundedMap } from './bounded-map.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS } from './thresholds.ts'

export interface SourceStaleOptions {
  /** Seconds without a sample after which it is reported, and below which it is over. */
  readonly staleSeconds: number
  readonly clearSeconds: number
}

/** A source that is read once an hour is not stale after a minute. */
const INTERVALS = 5
/** It has to be seen silent for so long: a machine that slept, or whose clock was set, has its next sample before that. */
const CONFIRM_MS = 10_000
const SOURCE_CAP = 32

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
  /** When each source that is silent was first seen so. */
  const silentSince = new BoundedMap<string, number>(SOURCE_CAP)

  function look(health: SourceHealth, at: number): readonly Finding[] {
    const { source, state, lastSampleAt, since, intervalMs, deadlineMs } = health
    const part = `source=${source}`
    const key = book.key(subject, part)
    const isWell = (state === 'ok' || state === 'starting') && health.provenance !== 'replay'
    const silentMs = at - (lastSampleAt ?? since)
    const limit = book.has(key) ? Math.min(clearSeconds, staleSeconds) : staleSeconds
    if (!isWell || silentMs <= INTERVALS * intervalMs + deadlineMs || silentMs < limit * 1000) {
      silentSince.delete(source)
      return book.resolve(key, at, `The ${source} source ${isWell ? 'sends samples again' : 'no longer says that it is well'}.`)
    }
    const seenAt = silentSince.set(source, Math.min(at, silentSince.get(source) ?? at))
    if (at - seenAt < CONFIRM_MS || !book.due(key, at, 'warning')) return NO_FINDINGS
    return book.raise(
      subject,
      at,
      {
        severity: 'warning',
        since: seenAt,
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
    snapshot: () => ({ findings: book.snapshot(), silentSince: silentSince.entries() }),
    restore(state) {
      const saved = state as { findings: unknown; silentSince: unknown }
      book.restore(saved.findings)
      silentSince.load(saved.silentSince)
    },
  }
}
