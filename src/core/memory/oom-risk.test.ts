import { describe, expect, it } from 'vitest'
import { flushed } from './cache-flush.ts'
import { riskOf, severityOf } from './oom-risk.ts'

const hour = 3600
const base = { ahead: hour, room: 0.5, evidence: 10 * hour, allocator: true, doubtful: false, before: null }

describe('risk of a forecast', () => {
  it('grows as the end comes nearer', () => {
    expect(riskOf({ ...base, ahead: 20 * hour })).toBe('low')
    expect(riskOf({ ...base, ahead: 4 * hour })).toBe('medium')
    expect(riskOf({ ...base, ahead: 0.9 * hour })).toBe('high')
    expect(riskOf({ ...base, ahead: 0.2 * hour, room: 0.05 })).toBe('critical')
    expect(['low', 'medium', 'high', 'critical'].map((risk) => severityOf(risk as 'low'))).toEqual(['info', 'info', 'warning', 'critical'])
  })

  it('does not promise much from a short rise', () => {
    expect(riskOf({ ...base, ahead: 60, evidence: 20 })).toBe('medium')
    expect(riskOf({ ...base, ahead: 60, evidence: 40 })).toBe('high')
    expect(riskOf({ ...base, ahead: 60, evidence: 40, allocator: false })).toBe('medium')
  })

  it('is never critical in the first minutes from the device alone, nor where full meant nothing before', () => {
    expect(riskOf({ ...base, ahead: 1, room: 0.01, evidence: 30, allocator: false })).toBe('high')
    expect(riskOf({ ...base, ahead: 1, room: 0.01, doubtful: true })).toBe('medium')
  })

  it('leaves a level only when it is clearly passed', () => {
    expect(riskOf({ ...base, ahead: 1.1 * hour })).toBe('medium')
    expect(riskOf({ ...base, ahead: 1.1 * hour, before: 'high' })).toBe('high')
  })
})

describe('cache flush', () => {
  it('is a large fall from nearly full between two looks, with somebody still there', () => {
    const input = { before: 0.97, now: 0.5, quietMs: 100, empty: false }
    expect(flushed(input).happened).toBe(true)
    expect(flushed({ ...input, empty: true }).happened).toBe(false)
    expect(flushed({ ...input, before: 0.7 }).happened).toBe(false)
    expect(flushed({ ...input, now: 0.93 }).happened).toBe(false)
    expect(flushed({ ...input, quietMs: 86_400_000 }).happened).toBe(false)
  })

  it('is not a slow decline', () => {
    let top = 0.97
    for (let now = 0.97; now > 0.5; now -= 0.01) {
      const look = flushed({ before: top, now, quietMs: 100, empty: false })
      expect(look.happened).toBe(false)
      top = look.top
    }
  })
})
