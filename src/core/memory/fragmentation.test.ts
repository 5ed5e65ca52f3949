import { describe, expect, it } from 'vitest'
import { fragmentationOf } from './fragmentation.ts'

describe('fragmentation', () => {
  it('does not take a healthy cache for fragmentation', () => {
    const got = fragmentationOf({ allocatedBytes: 3, reservedBytes: 100, activeBytes: 3, inactiveSplitBytes: 4 })
    expect(got.ratio).toBe(0.04)
    expect(got.releasableCacheBytes).toBe(93)
    expect(got.level).toBe('low')
  })

  it('knows nothing where nothing is reported', () => {
    expect(fragmentationOf({ allocatedBytes: null, reservedBytes: null, activeBytes: null, inactiveSplitBytes: null }).ratio).toBe(null)
    expect(fragmentationOf({ allocatedBytes: 0, reservedBytes: 0, activeBytes: 0, inactiveSplitBytes: 0 }).level).toBe(null)
  })

  it('grades what is lost', () => {
    const level = (split: number) =>
      fragmentationOf({ allocatedBytes: 10, reservedBytes: 100, activeBytes: 10, inactiveSplitBytes: split }).level
    expect([0, 5, 15, 40].map(level)).toEqual(['none', 'low', 'medium', 'high'])
  })
})
