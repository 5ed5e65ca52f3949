import { describe, expect, it } from 'vitest'
import type { ValuesOf } from '../core/setting.ts'
import { createEngine } from './engine.ts'
import { detectors } from './index.ts'
import { detectorOptions, detectorSettings } from './settings.ts'

const defaults = Object.fromEntries(Object.entries(detectorSettings).map(([key, entry]) => [key, entry.default])) as ValuesOf<
  typeof detectorSettings
>

describe('detector settings', () => {
  it('have defaults that their own schemas accept', () => {
    for (const [key, entry] of Object.entries(detectorSettings)) expect(entry.schema.safeParse(entry.default).success, key).toBe(true)
  })

  it('change nothing when nothing is set: the table of thresholds is the truth', () => {
    const options = detectorOptions(defaults)
    for (const kind of detectors) {
      const given = options[kind.name]
      if (given) expect({ ...(kind.defaults as object), ...given }, kind.name).toEqual(kind.defaults)
    }
  })

  it('take the seeds THRESHOLD, between 0 and 1', () => {
    const { schema, env } = detectorSettings['anomaly.threshold']
    expect(env).toBe('THRESHOLD')
    expect([0, 0.8, 1].every((value) => schema.safeParse(value).success)).toBe(true)
    expect(schema.safeParse(80).success).toBe(false)
  })

  it('let an alert rule set the level at which its detector reports', () => {
    const given = detectorOptions({
      ...defaults,
      'anomaly.threshold': 0.7,
      'alerts.rules.memory': { clear: 0.6, for_seconds: 30 },
      'alerts.rules.disk': { threshold: 0.8 },
      'alerts.rules.source_stale': { threshold: 300, clear: 10 },
    })
    expect(given.memory_pressure).toEqual({ levelRatio: 0.7, levelGapRatio: expect.closeTo(0.1), holdMinutes: 0.5 })
    expect(given.disk).toEqual({ fullRatio: 0.8, clearRatio: expect.closeTo(0.78) })
    expect(given.source_stale).toEqual({ staleSeconds: 300, clearSeconds: 10 })
    const off = detectorOptions({ ...defaults, 'alerts.rules.memory': false, 'alerts.rules.disk': true })
    expect(off).toEqual(detectorOptions(defaults))
    const patient = detectorOptions({ ...defaults, 'alerts.rules.memory': { threshold: 0.9, for_seconds: 3600 } })
    expect(patient.memory_pressure).toMatchObject({ levelRatio: 0.9, holdMinutes: 10 })
  })

  it('refuse a claim without a user', () => {
    expect(detectorSettings['policy.claims'].schema.safeParse(['0=alice']).success).toBe(true)
    expect(detectorSettings['policy.claims'].schema.safeParse(['0']).success).toBe(false)
  })

  it('name the detectors that exist when one is to be disabled that does not', () => {
    expect(() => createEngine({ kinds: detectors, disabled: ['termal'], hostname: 'n' })).toThrow(/no detector "termal".*thermal/)
  })
})
