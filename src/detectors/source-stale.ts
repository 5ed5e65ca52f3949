/** A source that says it is ok but sends nothing. Known failures are reported by driver_stuck. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorKind } from '../core/detector-contract.ts'
import { formatDuration } from '../core/format.ts'
import type { Finding, SourceHealth } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

/** A source that is read once an hour is not stale after a minute. */
const INTERVALS = 5
/** Silence must last this long: after a suspend or a clock change the next sample comes sooner. */
const CONFIRM_MS = 10_000
const SOURCE_CAP = 32

export const sourceStale: DetectorKind<Thresholds<'sourceStale'>> = {
  name: 'source_stale',
  about: 'A source says that it is ok, but has sent no sample for a minute and five of its intervals.',
  severities: ['warning'],
  inputs: ['health'],
  findsAgainSeconds: 180,
  patienceSeconds: 30,
  defaults: THRESHOLDS.sourceStale,
  create: (options) => createSourceStale(options),
}

function createSourceStale({ staleSeconds, clearSeconds }: Thresholds<'sourceStale'>): Detector {
  const book = new FindingBook('source_stale')
  const subject = subjectOf({})
  /** When each silent source was first seen silent. */
  const silentSince = new BoundedMap<string, number>(SOURCE_CAP)

  function look(health: SourceHealth, at: number): readonly Finding[] {
    const { source, state, lastSampleAt, since, intervalMs, deadlineMs } = health
    const part = `source=${source}`
    const key = book.key(subject, part)
    const isOk = (state === 'ok' || state === 'starting') && health.provenance !== 'replay'
    const silentMs = at - (lastSampleAt ?? since)
    const limit = book.has(key) ? Math.min(clearSeconds, staleSeconds) : staleSeconds
    if (!isOk || silentMs <= INTERVALS * intervalMs + deadlineMs || silentMs < limit * 1000) {
      silentSince.delete(source)
      return book.resolve(key, at, `The ${source} source ${isOk ? 'sends samples again' : 'does not say that it is ok anymore'}.`)
    }
    const seenAt = silentSince.keep(source, Math.min(at, silentSince.get(source) ?? at))
    if (at - seenAt < CONFIRM_MS || !book.due(key, at, 'warning')) return NO_FINDINGS
    return book.raise(
      subject,
      at,
      {
        severity: 'warning',
        since: seenAt,
        message: `The ${source} source says that it is ${state}, but has not sent a sample for ${formatDuration(silentMs)}.`,
        evidence: { source, state, silent_seconds: Math.round(silentMs / 1000), last_sample_at: lastSampleAt, threshold: staleSeconds },
        confidence: 1,
        advice: ['Run gpuwarden doctor, and check the agent log.'],
      },
      part,
    )
  }

  return {
    accept: (input) => (input.type === 'health' ? look(input.health, input.at) : NO_FINDINGS),
    snapshot: () => ({ findings: book.snapshot(), silentSince: silentSince.saved() }),
    restore(state) {
      const saved = state as { findings: unknown; silentSince: unknown }
      book.restore(saved.findings)
      silentSince.load(saved.silentSince)
    },
  }
}
