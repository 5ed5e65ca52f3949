/** What `detect` and `monitor --json` print of a finding. */
import { isoTime } from '../core/format.ts'
import type { Finding } from '../core/model.ts'

/** One finding as a line of NDJSON: everything it holds, in this order, and one more key on what was simulated. */
export function findingLine(finding: Finding): string {
  const { subject } = finding
  return JSON.stringify({
    at: isoTime(finding.at),
    detector: finding.detector,
    severity: finding.severity,
    state: finding.state,
    gpu: subject.gpuIndex,
    pid: subject.pid,
    run: subject.run,
    message: finding.message,
    evidence: finding.evidence,
    confidence: finding.confidence,
    predicted_at: timeOf(finding.predictedAt),
    predicted_earliest_at: timeOf(finding.predictedEarliestAt),
    predicted_latest_at: timeOf(finding.predictedLatestAt),
    risk_level: finding.riskLevel,
    since: isoTime(finding.since),
    advice: finding.advice,
    gpu_id: subject.gpu,
    rank: subject.rank,
    user: subject.user,
    host: subject.host,
    fingerprint: finding.fingerprint,
    ...(finding.provenance === 'simulated' ? { provenance: finding.provenance } : {}),
  })
}

function timeOf(at: number | null): string | null {
  return at === null ? null : isoTime(at)
}
