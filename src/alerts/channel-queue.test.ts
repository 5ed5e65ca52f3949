import { describe, expect, it } from 'vitest'
import type { AlertStatus } from '../core/alert-contract.ts'
import type { Severity } from '../core/model.ts'
import { ChannelQueue } from './channel-queue.ts'
import { Journal } from './journal.ts'
import type { Notice, SpooledMessage } from './notice.ts'
import { finding, NOON, recordedLog } from './pretend-world.contract.ts'

function notice(fingerprint: string, status: AlertStatus, at = 0, severity: Severity = 'warning'): Notice {
  const resolvedAt = status === 'resolved' ? NOON + at : null
  const none = { gpuLabel: null, gpuName: null, process: null, series: null }
  return {
    alert: { fingerprint, status, finding: finding(fingerprint, NOON + at, { severity }), firedAt: NOON + at, resolvedAt, ...none },
    ...{ severity, simulated: false, owner: null, at: NOON + at, queuedMs: at, urgent: false, held: false, thread: null },
  }
}

function queueWithJournal(): { queue: ChannelQueue; reopen: () => ChannelQueue } {
  const journal = new Journal({ dir: null, log: recordedLog(), now: () => NOON })
  return { queue: new ChannelQueue('mail', journal), reopen: () => new ChannelQueue('mail', journal) }
}

/** Puts everything that waits into a message. */
function send(queue: ChannelQueue, id = 'm'): void {
  const alerts = [...queue.waiting.values()].map(({ alert }) => alert)
  const links = { dashboard: null, silence: null }
  const message: SpooledMessage['message'] = {
    ...{ id, threadId: 't', isFirst: true, kind: 'alerts', host: 'box', at: NOON, severity: 'warning', alerts },
    ...{ suppressed: 0, owners: [], links, simulated: false },
  }
  queue.begin({ message, queuedMs: 0, attempts: 0, nextMs: 0, lastReason: null, revision: 0 }, [...queue.waiting.keys()], [], 0)
  queue.takeOff()
}

const waits = (queue: ChannelQueue) => [...queue.waiting].map(([key, { alert }]) => `${key} ${alert.status}`)

describe('the queue of a channel', () => {
  it('turns what cleared before anybody heard of it into one late notice', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('a', 'firing', 1))
    queue.clear(notice('a', 'resolved', 2))
    expect(waits(queue)).toEqual(['a late'])
    expect(queue.waiting.get('a')?.alert).toMatchObject({ firedAt: NOON + 1, resolvedAt: NOON + 2 })
  })

  it('keeps an episode that is over beside the one that has begun, and joins those that are over', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('a', 'firing', 1))
    queue.clear(notice('a', 'resolved', 2))
    queue.announce(notice('a', 'firing', 3))
    expect(waits(queue)).toEqual(['a|late late', 'a firing'])
    queue.clear(notice('a', 'resolved', 4))
    expect(waits(queue)).toEqual(['a late'])
    expect(queue.waiting.get('a')?.alert).toMatchObject({ firedAt: NOON + 1, resolvedAt: NOON + 4 })
  })

  it('sends an end only for an alert that it sent', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('a', 'firing'))
    send(queue)
    queue.delivered(5)
    expect(queue.told('a')).toMatchObject({ sent: true, ms: 5, thread: 't' })
    queue.clear(notice('a', 'resolved'))
    expect(waits(queue)).toEqual(['a resolved'])
    send(queue)
    queue.delivered(6)
    expect(queue.told('a')).toBe(undefined)
    queue.clear(notice('never', 'resolved'))
    expect(waits(queue)).toEqual([])
  })

  it('lets what cleared into a message that failed, under another id, but not into one on its way', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('a', 'firing', 1))
    queue.announce(notice('b', 'firing', 1))
    send(queue, 'm')
    queue.clear(notice('a', 'resolved', 2))
    expect(queue.current?.message.alerts.map(({ status }) => status)).toEqual(['firing', 'firing'])
    queue.retryLater(10, 'down')
    expect(queue.current).toMatchObject({ attempts: 1, message: { id: 'm-r1', alerts: [{ status: 'late' }, { status: 'firing' }] } })
    queue.clear(notice('b', 'resolved', 3))
    expect(queue.current?.message).toMatchObject({ id: 'm-r2', alerts: [{ status: 'late' }, { status: 'late' }] })
    expect(waits(queue)).toEqual([])
  })

  it('forgets what was refused, and what would have taken it back', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('a', 'firing'))
    send(queue)
    queue.clear(notice('a', 'resolved'))
    queue.givenUp(1)
    expect(waits(queue)).toEqual([])
    expect(queue.told('a')).toBe(undefined)
    expect(queue.current).toBe(null)
  })

  it('makes room by dropping the least severe, and counts it', () => {
    const { queue } = queueWithJournal()
    queue.announce(notice('important', 'firing', 0, 'critical'))
    for (let i = 0; i < 300; i++) queue.announce(notice(`n${i}`, 'firing', i, i % 2 ? 'warning' : 'info'))
    expect(queue.waiting.size).toBe(200)
    expect(queue.waiting.has('important')).toBe(true)
    expect(queue.overflow).toBe(101)
  })

  it('is the same after a restart; a message that may have been on its way counts as tried', () => {
    const { queue, reopen } = queueWithJournal()
    queue.announce(notice('a', 'firing'))
    send(queue)
    queue.announce(notice('b', 'firing'))
    queue.announce(notice('c', 'firing'))
    const again = reopen()
    expect(waits(again)).toEqual(['b firing', 'c firing'])
    expect(again.current).toMatchObject({ attempts: 1, message: { id: 'm' } })
  })
})
