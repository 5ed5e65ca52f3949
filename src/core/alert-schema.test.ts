import { describe, expect, it } from 'vitest'
import type { AlertView } from './alert-contract.ts'
import { alertsEventSchema, alertViewSchema } from './alert-schema.ts'
import { findingSchema } from './finding-schema.ts'
import type { Finding } from './model.ts'

const finding: Finding = {
  fingerprint: 'thermal|gpu=GPU-0',
  detector: 'thermal',
  provenance: 'live',
  subject: { host: 'box', gpu: 'GPU-0', gpuIndex: 0, pid: null, user: null, run: null, rank: null },
  severity: 'critical',
  state: 'active',
  at: 2000,
  since: 1000,
  message: 'GPU 0 is at 93 °C',
  evidence: { celsius: 93, loss: 'NaN', isHeld: true, none: null },
  confidence: 0.9,
  advice: ['Look at the fans.'],
  predictedAt: null,
  predictedEarliestAt: null,
  predictedLatestAt: null,
  riskLevel: null,
}

const alert: AlertView = {
  fingerprint: finding.fingerprint,
  state: 'firing',
  finding,
  firedAt: 2000,
  resolvedAt: null,
  flapping: false,
  simulated: false,
  acknowledged: { at: 2500, until: 9000, by: 'ada', severity: 'critical' },
  mutedBy: 'acknowledged',
  silence: null,
  told: ['email'],
  waiting: [],
  gpuLabel: '0',
  unconfirmed: false,
}

const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) => schema.safeParse(value).success

describe('the shapes of findings and alerts', () => {
  it('take what the model says they are', () => {
    const event = { type: 'alerts', at: 1, alerts: [alert], gone: ['x'], hasMore: false, silencesChanged: true }
    expect([accepts(findingSchema, finding), accepts(alertViewSchema, alert), accepts(alertsEventSchema, event)]).toEqual([
      true,
      true,
      true,
    ])
  })

  it('do not take a field that nobody described, nor one that is missing', () => {
    const { message, ...silent } = finding
    expect(message).not.toBe('')
    const wrong = [{ ...finding, color: 'red' }, silent, { ...finding, subject: { ...finding.subject, rack: 7 } }]
    for (const one of wrong) {
      expect(accepts(findingSchema, one)).toBe(false)
      expect(accepts(alertViewSchema, { ...alert, finding: one })).toBe(false)
    }
    expect(accepts(alertViewSchema, { ...alert, mutedBy: 'nobody' })).toBe(false)
  })
})
