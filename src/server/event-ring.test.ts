import { describe, expect, it } from 'vitest'
import { createEventRing } from './event-ring.ts'
import { tickEvent } from './pretend-agent.contract.ts'

describe('the ring', () => {
  it('keeps a bounded number of events', () => {
    const ring = createEventRing({ boot: 'b', maxEvents: 3, maxBytes: 1e9 })
    for (let seq = 1; seq <= 5; seq++) ring.push(tickEvent(seq))
    expect([ring.length, ring.lastSeq]).toEqual([3, 5])
    expect([2, 3, 5, 6].map((seq) => ring.get(seq)?.seq)).toEqual([undefined, 3, 5, undefined])
  })

  it('keeps a bounded number of bytes, guessed well and counted once they are known', () => {
    const ring = createEventRing({ boot: 'b', maxEvents: 1000, maxBytes: 100_000 })
    const entry = ring.push(tickEvent(1, 8))
    const guessed = entry.bytes
    const frame = ring.frame(entry)
    expect(frame.toString()).toMatch(/^id: b-1\nevent: tick\ndata: \{.*\}\n\n$/)
    expect(guessed / frame.length).toBeGreaterThan(0.5)
    expect(guessed / frame.length).toBeLessThan(2)
    expect(ring.bytes).toBe(frame.length)
    for (let seq = 2; seq <= 100; seq++) ring.frame(ring.push(tickEvent(seq, 8)))
    expect(ring.bytes).toBeLessThanOrEqual(100_000 + frame.length)
    expect(ring.length).toBeGreaterThan(1)
    // One that has left the ring is no longer counted.
    const lost = ring.bytes
    entry.frame = null
    ring.frame(entry)
    expect(ring.bytes).toBe(lost)
  })

  it('counts what it skips and keeps nothing before it', () => {
    const ring = createEventRing({ boot: 'b', maxEvents: 10, maxBytes: 1e9 })
    ring.push(tickEvent(1))
    ring.skip()
    expect([ring.length, ring.lastSeq, ring.bytes, ring.get(1), ring.get(2)]).toEqual([0, 2, 0, undefined, undefined])
    ring.push(tickEvent(3))
    expect([2, 3].map((seq) => ring.get(seq)?.seq)).toEqual([undefined, 3])
  })

  it('keeps one event, however large', () => {
    const ring = createEventRing({ boot: 'b', maxEvents: 10, maxBytes: 10 })
    for (let seq = 1; seq <= 3; seq++) ring.push(tickEvent(seq))
    expect(ring.length).toBe(1)
    expect(ring.get(3)).toBeDefined()
  })
})
