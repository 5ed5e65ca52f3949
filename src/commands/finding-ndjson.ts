/** What `detect` and `monitor --json` print of a finding. */
import type { Finding, Reading } from '../core/model.ts'

/** One finding as a line of NDJSON; these keys, in this order, and one more on what was simulated. */
export function findingLine(finding: Finding): string {
  const { subject } = finding
  return JSON.stringify({
    at: iso(finding.at),
    detector: finding.detector,
    severity: finding.severity,
    state: finding.state,
    gpu: subject.gpuIndex,
    pid: subject.pid,
    run: subject.run,
    message: finding.message,
    evidence: finding.evidence,
    confidence: finding.confidence,
    predicted_at: finding.predictedAt === null ? null : iso(finding.predictedAt),
    ...(finding.provenance === 'simulated' ? { provenance: finding.provenance } : {}),
  })
}

function iso(at: Reading): string | null {
  // A forecast may lie beyond the last date there is.
  return at === null || Math.abs(at) > 8.64e15 ? null : new Date(at).toISOString()
}
