import { describe, expect, it } from 'vitest'
import type { GpuSample, SourceHealth } from '../../../src/core/model.ts'
import { freshnessOf } from './freshness.ts'

const sample = { state: 'ok', stateReason: null, at: 1000 } as GpuSample
const health = { source: 'nvidia', state: 'ok', since: 5, message: null, intervalMs: 1000, deadlineMs: 5000 } as SourceHealth
const good = { isLinked: true, health, sample, ageMs: 200 }

describe('freshnessOf', () => {
  it('is live while readings come', () => {
    expect(freshnessOf(good)).toEqual({ kind: 'live' })
  })

  it('never shows old readings as current', () => {
    expect(freshnessOf({ ...good, ageMs: 7999 }).kind).toBe('live')
    expect(freshnessOf({ ...good, ageMs: 8001 }).kind).toBe('stale')
  })

  it('puts what explains the most first', () => {
    expect(freshnessOf({ ...good, isLinked: false }).kind).toBe('unreachable')
    expect(freshnessOf({ ...good, health: { ...health, state: 'not_responding', message: 'no answer for 1.4 s' } })).toEqual({
      kind: 'not_responding',
      words: 'The driver is not responding',
      since: 5,
    })
    expect(freshnessOf({ ...good, health: { ...health, state: 'crashed', message: 'it ended with signal 11' } })).toMatchObject({
      kind: 'not_responding',
      words: 'it ended with signal 11',
    })
    expect(freshnessOf({ ...good, sample: { ...sample, state: 'lost', stateReason: 'XID 79' } })).toEqual({
      kind: 'lost',
      words: 'Lost: the GPU fell off the bus (XID 79)',
      since: 1000,
    })
    expect(freshnessOf({ ...good, sample: null })).toEqual({ kind: 'waiting' })
    expect(freshnessOf({ ...good, health: { ...health, state: 'ended' } }).kind).toBe('ended')
  })
})
