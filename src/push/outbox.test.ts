import { describe, expect, it } from 'vitest'
import type { Log } from '../core/kinds.ts'
import { Outbox, type Outcome } from './outbox.ts'

function silentLog(): Log & { readonly lines: string[] } {
  const lines: string[] = []
  const write = (_fields: object, message: string) => void lines.push(message)
  const log = { lines, debug: write, info: write, warn: write, error: write, child: () => log }
  return log
}

const OK: Outcome = { ok: true }
const LATER: Outcome = { ok: false, retry: true, reason: 'HTTP 503' }
const NEVER: Outcome = { ok: false, retry: false, reason: 'HTTP 400' }

/** A receiver that answers as it is told, and keeps what it took. */
function receiver(answers: Outcome[], otherwise: Outcome = OK) {
  const taken: number[] = []
  const log = silentLog()
  const send = async (body: number) => {
    const answer = answers.shift() ?? otherwise
    if (answer.ok) taken.push(body)
    return answer
  }
  return { taken, log, options: { log, send, maxParcels: 5, maxBytes: 100, firstPauseMs: 1, longestPauseMs: 2 } }
}

const parcel = (body: number, bytes = 10) => ({ body, bytes, samples: 3 })

async function settled(outbox: Outbox<number>): Promise<void> {
  while (outbox.waiting > 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('Outbox', () => {
  it('sends in order, and again what failed for now', async () => {
    const { taken, log, options } = receiver([LATER, LATER, OK, LATER])
    const outbox = new Outbox(options)
    for (const body of [1, 2, 3]) outbox.put(parcel(body))
    await settled(outbox)
    expect(taken).toEqual([1, 2, 3])
    expect(outbox.dropped()).toEqual({ count: 0, reason: null })
    expect(log.lines.filter((line) => line === 'metrics could not be pushed')).toHaveLength(2)
  })

  it('drops and counts what is refused for good, and goes on', async () => {
    const { taken, options } = receiver([NEVER])
    const outbox = new Outbox(options)
    outbox.put(parcel(1))
    outbox.put(parcel(2))
    await settled(outbox)
    expect(taken).toEqual([2])
    expect(outbox.dropped().count).toBe(3)
  })

  it('keeps the newest when there is no room, by number and by size', async () => {
    const { taken, options } = receiver([], LATER)
    const outbox = new Outbox({ ...options, firstPauseMs: 10_000, longestPauseMs: 10_000 })
    for (let body = 1; body <= 8; body++) outbox.put(parcel(body))
    expect(outbox.waiting).toBe(5)
    outbox.put(parcel(9, 95))
    expect(outbox.waiting).toBe(1)
    await outbox.close(50)
    expect(taken).toEqual([])
    expect(outbox.dropped()).toEqual({ count: 27, reason: 'HTTP 503' })
  })

  it('takes a thrown fault as a reason to try again', async () => {
    let tries = 0
    const { options } = receiver([])
    const outbox = new Outbox<number>({
      ...options,
      async send() {
        tries++
        if (tries < 3) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
        return OK
      },
    })
    outbox.put(parcel(1))
    await settled(outbox)
    expect(tries).toBe(3)
  })

  it('is closed within its time while a receiver hangs', async () => {
    const { options } = receiver([])
    const outbox = new Outbox<number>({
      ...options,
      send: (_body, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    })
    outbox.put(parcel(1))
    await outbox.close(20)
    expect(outbox.dropped().count).toBe(3)
  })
})
