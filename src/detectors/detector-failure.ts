import type { Finding } from '../core/model.ts'
import { fingerprintOf, subjectOf } from './finding.ts'

const FAILURE = 'detector_failure'

export interface DetectorFailure {
  readonly detector: string
  /** `running`: it is switched off. `restoring`: it starts without its saved state. */
  readonly while: 'running' | 'restoring'
  readonly error: unknown
}

/** Of a detector that failed while running. */
export function failureFinding(name: string, error: unknown, host: string, at: number): Finding {
  const subject = subjectOf({ host })
  return {
    fingerprint: fingerprintOf(FAILURE, subject, `name=${name}`),
    detector: FAILURE,
    provenance: 'live',
    subject,
    severity: 'warning',
    state: 'active',
    at,
    since: at,
    message: `The detector ${name} failed and is off until the agent restarts: ${error instanceof Error ? error.message : String(error)}`,
    evidence: { detector: name },
    confidence: 1,
    advice: ['This is a bug in gpuwarden: please report it with the agent log.'],
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
    riskLevel: null,
  }
}
