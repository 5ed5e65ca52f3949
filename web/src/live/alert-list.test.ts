import { describe, expect, it } from 'vitest'
import type { AlertsEvent, AlertView } from '../../../src/core/kinds.ts'
import { alertsNow, laterThan } from './alert-list.ts'

const alert = (fingerprint: string, state: AlertView['state'], silence: string | null = null) =>
  ({ fingerprint, state, silence }) as AlertView
const event = (at: number, alerts: readonly AlertView[], gone: readonly string[] = []): AlertsEvent => ({
  ...{ type: 'alerts', at, alerts, gone },
  hasMore: false,
  silencesChanged: false,
})
const states = (list: readonly AlertView[]) => Object.fromEntries(list.map(({ fingerprint, state }) => [fingerprint, state]))

describe('alertsNow', () => {
  const answer = { at: 1000, alerts: [alert('a', 'firing'), alert('b', 'pending')] }

  it('is the answer while nothing came since', () => {
    expect(states(alertsNow(answer, []))).toEqual({ a: 'firing', b: 'pending' })
  })

  it('takes what changed, what is new and what is gone, in the order in which it came', () => {
    const news = [
      event(1500, [alert('b', 'firing'), alert('c', 'pending')]),
      event(2000, [alert('a', 'resolved')], ['c']),
      event(2500, [alert('b', 'firing', 's1')]),
    ]
    const list = alertsNow(answer, news)
    expect(states(list)).toEqual({ a: 'resolved', b: 'firing' })
    expect(list.find(({ fingerprint }) => fingerprint === 'b')?.silence).toBe('s1')
  })

  it('does not go back behind an answer that is newer than the event', () => {
    const old = event(999, [alert('a', 'pending')], ['b'])
    expect(states(alertsNow(answer, [old]))).toEqual({ a: 'firing', b: 'pending' })
    expect(states(alertsNow({ at: 900, alerts: [] }, [old]))).toEqual({ a: 'pending' })
  })
})

describe('laterThan', () => {
  it('lets go of what an answer holds already', () => {
    expect(laterThan(1000, [event(999, []), event(1000, []), event(1001, [])]).map(({ at }) => at)).toEqual([1000, 1001])
  })
})
