import { describe, expect, it } from 'vitest'
import { alertsEventSchema, alertViewSchema } from './alert-schema.ts'
import { findingSchema } from './finding-schema.ts'
import { alertWith, findingWith } from './model.fixture.ts'

const finding = findingWith({
  fingerprint: 'thermal|gpu=GPU-0',
  detector: 'thermal',
  subject: { host: 'box', gpu: 'GPU-0', gpuIndex: 0 },
  severity: 'critical',
  at: 2000,
  since: 1000,
  message: 'GPU 0 is at 93 °C',
  evidence: { celsius: 93, loss: 'NaN', isHeld: true, none: null },
  advice: ['Look at the fans.'],
})

const alert = alertWith(finding, {
  acknowledged: { at: 2500, until: 9000, by: 'ada', severity: 'critical' },
  mutedBy: 'acknowledged',
  told: ['email'],
  gpuLabel: '0',
})

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
