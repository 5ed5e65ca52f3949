import { describe, expect, it } from 'vitest'
import { checkMatcher, matchesAll, parseMatcher } from './matcher.ts'
import { finding, NOON } from './pretend-world.contract.ts'
import { channelsFor, checkRoutes, type Route } from './routes.ts'

const subject = {
  finding: finding('thermal|gpu=GPU-7', NOON, {
    detector: 'thermal',
    severity: 'critical',
    subject: { gpu: 'GPU-7', gpuIndex: 3, user: 'ada', run: 'bert' },
  }),
  gpuLabel: '3:1',
}
const matches = (...texts: string[]) => matchesAll(texts.map(parseMatcher), subject)

describe('matchers', () => {
  it.each([
    ['detector=thermal', true],
    ['detector = "thermal"', true],
    ['detector!=thermal', false],
    ['detector=~ther.*', true],
    ['detector=~her', false],
    ['severity=critical', true],
    ['gpu=3', true],
    ['gpu=3:1', true],
    ['gpu=GPU-7', true],
    ['gpu=7', false],
    ['gpu!=3', false],
    ['gpu!=4', true],
    ['user=~ada|bob', true],
    ['run=bert', true],
    ['host!=box', false],
    ['fingerprint=thermal|gpu=GPU-7', true],
  ])('%s: %s', (text, wanted) => {
    expect(matches(text)).toBe(wanted)
  })

  it('have to agree, all of them, and none at all match nothing', () => {
    expect(matches('gpu=3', 'user=ada')).toBe(true)
    expect(matches('gpu=3', 'user=bob')).toBe(false)
    expect(matchesAll([], subject)).toBe(false)
  })

  it('treat what is unknown as empty', () => {
    const unknown = { finding: finding('x', NOON), gpuLabel: null }
    expect(matchesAll([parseMatcher('gpu=')], unknown)).toBe(true)
    expect(matchesAll([parseMatcher('user!=ada')], unknown)).toBe(true)
    expect(matchesAll([parseMatcher('gpu=~.+')], unknown)).toBe(false)
  })

  it.each([
    ['gpu', 'is not a matcher'],
    ['color=red', '"color" cannot be matched'],
    ['gpu=~(', 'is not a regular expression'],
    ['user=~(a+)+b', 'may take too long'],
    ['user=~.*.*.*.*x', 'may take too long'],
    [`user=${'x'.repeat(400)}`, 'at most 300'],
  ])('%s is refused: %s', (text, message) => {
    expect(() => parseMatcher(text)).toThrow(message)
  })

  it('are checked when they come as objects', () => {
    expect(checkMatcher({ name: 'gpu', operator: '=', value: '0' })).toEqual({ name: 'gpu', operator: '=', value: '0' })
    expect(() => checkMatcher({ name: 'gpu', operator: '<', value: '0' })).toThrow('"<" is not an operator')
  })
})

describe('routes', () => {
  const all = ['email', 'slack', 'pager']
  const to = (routes: readonly Route[]) => [...channelsFor(routes, all, subject)]

  it('lead everywhere from warning on when there are none', () => {
    expect(to([])).toEqual(all)
    expect([...channelsFor([], all, { ...subject, finding: { ...subject.finding, severity: 'info' } })]).toEqual([])
  })

  it('add up', () => {
    expect(to([{ channels: ['email'] }, { channels: ['pager', 'email'], severity: ['critical'] }])).toEqual(['email', 'pager'])
  })

  it('fit by severity, detector, GPU and user, all that is given', () => {
    expect(to([{ channels: ['slack'], detector: ['xid', 'thermal'], gpu: ['3'], user: ['ada'] }])).toEqual(['slack'])
    expect(to([{ channels: ['slack'], detector: ['xid'] }])).toEqual([])
    expect(to([{ channels: ['slack'], gpu: ['0'] }])).toEqual([])
    expect(to([{ channels: ['slack'], user: ['bob'] }])).toEqual([])
    expect(to([{ channels: ['slack'], severity: ['warning'] }])).toEqual([])
  })

  it('to a channel that does not exist are an error that names it', () => {
    expect(() => checkRoutes([{ channels: ['email', 'phone'] }], new Set(all))).toThrow('alerts.routes[0]: there is no channel "phone"')
    expect(() => checkRoutes([{ channels: ['email'] }], new Set())).toThrow('there is no channel "email"')
    expect(() => checkRoutes([{ channels: ['email'] }], new Set(all))).not.toThrow()
  })
})
