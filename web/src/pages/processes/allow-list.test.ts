import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { ProcessInfo } from '../../../../src/core/model.ts'
import { allowEntries, policyOf } from './allow-list.ts'

const INFO = { user: 'mallory', executable: '/tmp/.cache/worker', name: 'worker', container: 'docker:4f1c' } as ProcessInfo

describe('allowEntries', () => {
  it('writes the lines that the configuration file wants', () => {
    const lines = Object.fromEntries(allowEntries(INFO, '0', {}).map(({ name, yaml }) => [name, parse(yaml)]))
    expect(lines).toEqual({
      user: { policy: { allowed_users: ['mallory'] } },
      command: { policy: { allowed_commands: ['/tmp/.cache/worker'] } },
      container: { policy: { allowed_containers: ['docker:4f1c'] } },
      claim: { policy: { claims: ['0=mallory'] } },
    })
  })

  it('keeps who is allowed already, and says when it is the first rule', () => {
    const [fresh] = allowEntries(INFO, '0', {})
    const [known] = allowEntries(INFO, '0', { 'policy.allowed_users': ['ada', 'mallory'] })
    expect(fresh?.meaning).toContain('first rule')
    expect(known?.meaning).not.toContain('first rule')
    expect(parse(known?.yaml ?? '')).toEqual({ policy: { allowed_users: ['ada', 'mallory'] } })
  })

  it('offers nothing that is not known', () => {
    const entries = allowEntries({ ...INFO, user: null, container: null, executable: null } as ProcessInfo, '0', {})
    expect(entries.map(({ name }) => name)).toEqual(['command'])
  })

  it('cannot be broken out of, whatever a program is called', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 12 }), (executable) => {
        const entry = allowEntries({ ...INFO, executable } as ProcessInfo, '0', {}).find(({ name }) => name === 'command')
        expect(parse(entry?.yaml ?? '')).toEqual({ policy: { allowed_commands: [executable] } })
      }),
    )
  })
})

it('takes the lists of the policy from the settings', () => {
  const settings = [
    { key: 'policy.allowed_users', value: ['ada'] },
    { key: 'policy.learn_minutes', value: 5 },
    { key: 'devices', value: [1] },
  ]
  expect(policyOf(settings)).toEqual({ 'policy.allowed_users': ['ada'] })
})
