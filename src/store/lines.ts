/** The lines that only the store writes; those of samples are in record.ts. */
import type { Finding, Reading } from '../core/model.ts'
import { type JsonRecord, jsonNumber } from '../core/record.ts'

const iso = (at: Reading) => (at === null ? null : new Date(at).toISOString())

export function findingRecord(finding: Finding): JsonRecord {
  const { subject } = finding
  return {
    at: iso(finding.at),
    detector: finding.detector,
    severity: finding.severity,
    state: finding.state,
    gpu: subject.gpu,
    pid: subject.pid,
    run: subject.run,
    message: finding.message,
    evidence: Object.fromEntries(
      Object.entries(finding.evidence).map(([key, value]) => [key, typeof value === 'number' ? jsonNumber(value) : value]),
    ),
    confidence: finding.confidence,
    predicted_at: iso(finding.predictedAt),
    predicted_earliest_at: iso(finding.predictedEarliestAt),
    predicted_latest_at: iso(finding.predictedLatestAt),
    risk_level: finding.riskLevel,
    fingerprint: finding.fingerprint,
    since: iso(finding.since),
    host: subject.host,
    gpu_index: subject.gpuIndex,
    user: subject.user,
    rank: subject.rank,
    advice: finding.advice,
    ...(finding.provenance === 'live' ? {} : { provenance: finding.provenance }),
  }
}

/** Lines that never reached the disk, or that were removed from it while being written. */
export interface Gap {
  from: number
  to: number
  dropped: number
  reason: string
}

/** A line of `gpu_events_*.jsonl` that says what is missing. */
export function gapRecord(gap: Gap, at: number): JsonRecord {
  return { timestamp: iso(at), event: 'log_gap', from: iso(gap.from), to: iso(gap.to), dropped: gap.dropped, reason: gap.reason }
}
