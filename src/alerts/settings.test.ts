import { describe, expect, it } from 'vitest'
import { detectors } from '../detectors/index.ts'
import { RULE_NAMES, RULES } from './rules.ts'
import { alertSettings } from './settings.ts'

const check = (key: keyof typeof alertSettings, value: unknown) => {
  const result = alertSettings[key].schema.safeParse(value)
  return result.success ? result.data : result.error.issues.map((issue) => issue.message).join('; ')
}

describe('settings of the alerts', () => {
  it('accept their own defaults', () => {
    for (const entry of Object.values(alertSettings)) expect(entry.schema.safeParse(entry.default).success).toBe(true)
  })

  it('have one line for each rule', () => {
    for (const name of RULE_NAMES) {
      expect(check(`alerts.rules.${name}`, false)).toBe(false)
      expect(check(`alerts.rules.${name}`, { for_seconds: 60, severity: 'critical' })).toEqual({ for_seconds: 60, severity: 'critical' })
    }
    expect(check('alerts.rules.memory', { threshold: 0.9, clear: 0.8 })).toEqual({ threshold: 0.9, clear: 0.8 })
  })

  it('are about detectors that there are', () => {
    const known = detectors.map(({ name }) => name)
    expect(RULE_NAMES.map((name) => RULES[name].detector).filter((name) => !known.includes(name))).toEqual([])
  })

  it('name the place of what is wrong inside a list or an object', () => {
    expect(check('alerts.routes', [{ channels: ['a'] }, { channels: [] }])).toBe('[1].channels: names no channel')
    expect(check('alerts.routes', [{ channels: ['a'], color: 1 }])).toMatch(/^\[0\]: .*color/)
    expect(check('alerts.routes', [{ channels: ['a'], severity: ['bad'] }])).toMatch(/^\[0\]\.severity\[0\]: .*critical/)
    expect(check('alerts.quiet_hours', [{ from: '25:00', to: '07:00' }])).toMatch(/^\[0\]\.from: expected a time of day/)
    expect(check('alerts.maintenance', [{ from: '01:00' }])).toMatch(/^\[0\]: expected either from and to/)
    expect(check('alerts.maintenance', [{ start: 'tomorrow', end: '2030-01-01' }])).toMatch(/^\[0\]\.start: expected a time/)
    expect(check('alerts.owners', { ada: 'two words' })).toBe('ada: expected an address')
    expect(check('alerts.rules.memory', { threshold: 0.5, clear: 0.8 })).toBe('clear: must be at or below threshold')
    expect(check('alerts.rules.xid', { threshold: 1 })).toMatch(/threshold/)
    expect(check('alerts.dashboard_url', 'gpu.example.org')).toMatch(/http/)
  })

  it('take GPUs as numbers, and lists as JSON text from a variable', () => {
    expect(check('alerts.routes', [{ channels: ['a'], gpu: [0, '1:2'] }])).toEqual([{ channels: ['a'], gpu: ['0', '1:2'] }])
    expect(check('alerts.owners', '{"ada": "ada@example.org"}')).toEqual({ ada: 'ada@example.org' })
    expect(check('alerts.quiet_hours', '[{"from": "22:00", "to": "07:00"}]')).toEqual([{ from: '22:00', to: '07:00' }])
    expect(check('alerts.maintenance', [{ days: ['sat'], from: '01:00', to: '03:00', gpu: [0] }])).toMatchObject([{ gpu: ['0'] }])
  })

  it('hide the address of the heartbeat, which is a secret', () => {
    expect(alertSettings['alerts.heartbeat_url'].secret).toBe(true)
  })
})
