import type { Finding, FindingSubject } from '../../../../src/core/model.ts'

const NOBODY: FindingSubject = { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }

/** A finding with nothing but what is given. */
export function findingWith(parts: Partial<Omit<Finding, 'subject'>> & { readonly subject?: Partial<FindingSubject> }): Finding {
  return {
    fingerprint: 'f',
    detector: 'oom',
    provenance: 'live',
    severity: 'warning',
    state: 'active',
    at: 0,
    since: 0,
    message: '',
    evidence: {},
    confidence: 0.5,
    advice: [],
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
    riskLevel: null,
    ...parts,
    subject: { ...NOBODY, ...parts.subject },
  }
}
