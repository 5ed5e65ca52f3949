import { describe, expect, it } from 'vitest'
import type { GpuSample, SourceHealth } from '../../../src/core/model.ts'
import { freshnessOf } from './freshness.ts'

const sample = { state: 'ok', stateReason: null, at: 1000 } as GpuSample
const health = { source: 'nvidia', state: 'ok', since: 5, message: null, intervalMs: 1000, deadlineMs: 5000 } as SourceHealth
const good = { isLinked: true, health, sample, live: true }
const of = ({ isLinked, health: one, ...view }: Omit<typeof good, 'sample'> & { sample: GpuSample | null }) =>
  freshnessOf(isLinked, one, view)

describe('freshnessOf', () => {
  it('is live while readings come', () => {
    expect(of(good)).toEqual({ kind: 'live' })
  })

  it('never shows old readings as current', () => {
    expect(of({ ...good, live: false }).kind).toBe('stale')
  })

  it('puts what explains the most first', () => {
    expect(of({ ...good, isLinked: false }).kind).toBe('unreachable')
    expect(of({ ...good, health: { ...health, state: 'not_responding', message: 'no answer for 1.4 s' } })).toEqual({
      kind: 'not_responding',
      words: 'The driver is not responding',
      since: 5,
    })
    expect(of({ ...good, health: { ...health, state: 'crashed', message: 'it ended with signal 11' } })).toMatchObject({
      kind: 'not_responding',
      words: 'it ended with signal 11',
    })
    expect(of({ ...good, sample: { ...sample, state: 'lost', stateReason: 'XID 79' } })).toEqual({
      kind: 'lost',
      words: 'Lost: the GPU fell off the bus (XID 79)',
      since: 1000,
    })
    const bare = { ...sample, state: 'no_driver', stateReason: 'install it' } as const
    expect(of({ ...good, health: { ...health, state: 'failed', message: 'all of it' }, sample: bare })).toEqual({
      kind: 'trouble',
      words: 'No driver: install it',
      since: null,
    })
    expect(of({ ...good, sample: null })).toEqual({ kind: 'waiting' })
    // A recording that is paused or over is shown as it was at that moment.
    expect(of({ ...good, live: false, health: { ...health, provenance: 'replay', state: 'ended' } }).kind).toBe('live')
    expect(of({ ...good, isLinked: false, health: { ...health, provenance: 'replay' } }).kind).toBe('unreachable')
  })
})
