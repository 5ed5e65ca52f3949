import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AlertsEvent } from '../core/alert-contract.ts'
import { alertsEventSchema } from '../core/alert-schema.ts'
import { MOST_IN_EVENT } from './alert-news.ts'
import { parseMatcher } from './matcher.ts'
import { HOUR, MINUTE, pretendWorld, SECOND, type World } from './pretend-world.contract.ts'

const QUICK = { settings: { 'alerts.group_seconds': 0 } }

interface Followed {
  readonly stop: () => void
  /** What came since it was last asked. The time in which changes are gathered passes only here. */
  next(): AlertsEvent[]
}

function follow({ alerts }: World): Followed {
  const events: AlertsEvent[] = []
  const stop = alerts.news.follow((event) => events.push(event))
  onTestFinished(stop)
  return {
    stop,
    next() {
      vi.advanceTimersByTime(1000)
      return events.splice(0).map((event) => alertsEventSchema.parse(event))
    },
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const shown = ({ alerts }: AlertsEvent) => alerts.map(({ fingerprint, state, mutedBy }) => `${fingerprint} ${state} ${mutedBy}`)

describe('news of alerts', () => {
  it('reports an alert from its beginning to its end, and when it is forgotten', async () => {
    const world = pretendWorld(QUICK)
    const told = follow(world)
    world.say('a')
    await world.pass(10 * SECOND)
    expect(told.next().map(shown)).toEqual([['a firing null']])
    world.clear('a')
    await world.pass(10 * MINUTE)
    expect(told.next().map(shown)).toEqual([['a resolved null']])
    await world.pass(2 * HOUR, MINUTE)
    expect(told.next()).toEqual([{ type: 'alerts', alerts: [], gone: ['a'], hasMore: false, silencesChanged: false, at: world.at }])
  })

  it('reports what people do: a silence, its end, an acknowledgment and its withdrawal', async () => {
    const world = pretendWorld(QUICK)
    world.say('a')
    await world.pass(10 * SECOND)
    const told = follow(world)
    const silence = world.alerts.silence([parseMatcher('fingerprint=a')], world.at + HOUR, '', 'ada')
    expect(told.next()).toMatchObject([{ silencesChanged: true, alerts: [{ mutedBy: 'silence', silence: silence.id }] }])
    world.alerts.unsilence(silence.id)
    expect(told.next()).toMatchObject([{ silencesChanged: true, alerts: [{ mutedBy: null, silence: null }] }])
    world.alerts.acknowledge('a', world.at + HOUR, 'ada')
    expect(told.next()).toMatchObject([{ silencesChanged: false, alerts: [{ acknowledged: { by: 'ada' } }] }])
    world.alerts.unacknowledge('a')
    expect(told.next()).toMatchObject([{ alerts: [{ acknowledged: null }] }])
  })

  it('reports a silence that covers nothing, and one that ran out', async () => {
    const world = pretendWorld(QUICK)
    const told = follow(world)
    world.alerts.silence([parseMatcher('gpu=7')], world.at + MINUTE, '', '')
    expect(told.next()).toMatchObject([{ alerts: [], gone: [], silencesChanged: true }])
    await world.pass(2 * MINUTE)
    expect(told.next()).toMatchObject([{ silencesChanged: true }])
  })

  it('reports a changed message, a higher severity and a delivery, and nothing while nothing changed', async () => {
    const world = pretendWorld(QUICK)
    world.channel.goDown()
    world.say('a', { message: '81 °C' })
    await world.pass(10 * SECOND)
    const told = follow(world)
    world.say('a', { message: '81 °C', evidence: { celsius: 81.5 } })
    await world.pass(10 * SECOND)
    expect(told.next()).toEqual([])
    world.say('a', { message: '84 °C' })
    await world.pass(10 * SECOND)
    expect(told.next()).toMatchObject([{ alerts: [{ finding: { message: '84 °C' }, told: [] }] }])
    world.say('a', { message: '84 °C', severity: 'critical' })
    expect(told.next()).toMatchObject([{ alerts: [{ finding: { severity: 'critical' } }] }])
    world.channel.goUp()
    await world.pass(10 * MINUTE)
    expect(told.next()).toMatchObject([{ alerts: [{ told: ['email'], waiting: [] }] }])
  })

  it('gathers what changes together, and says when one event cannot hold it', async () => {
    const world = pretendWorld(QUICK)
    const told = follow(world)
    for (let n = 0; n < MOST_IN_EVENT + 20; n++) world.say(`a${n}`)
    expect(told.next().map(({ alerts, hasMore }) => [alerts.length, hasMore])).toEqual([[MOST_IN_EVENT, true]])
    expect(told.next()).toEqual([])
  })

  it('begins with the current state, and computes nothing when nobody follows', async () => {
    const world = pretendWorld(QUICK)
    world.say('a')
    await world.pass(10 * SECOND)
    const told = follow(world)
    await world.pass(MINUTE)
    expect(told.next()).toEqual([])
    world.say('b')
    told.stop()
    const waiting = vi.getTimerCount()
    world.say('c')
    await world.pass(MINUTE)
    expect(told.next()).toEqual([])
    expect(vi.getTimerCount()).toBeLessThanOrEqual(waiting)
    const again = follow(world)
    world.alerts.acknowledge('b', world.at + HOUR, '')
    expect(again.next().map(shown)).toEqual([['b firing acknowledged']])
  })
})
