/** What `detect` and `monitor --json` print of a finding. */
import { isoTime } from '../core/format.ts'
import type { Finding } from '../core/model.ts'

/** One finding as a line of NDJSON; these keys, in this order, and one more on what was simulated. */
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
    predicted_at: finding.predictedAt === null ? null : isoTime(finding.predictedAt),
    ...(finding.provenance === 'simulated' ? { provenance: finding.provenance } : {}),
  })
}
