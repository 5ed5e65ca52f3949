import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advance, observedTime } from './observed-time.ts'

describe('observed time', () => {
  const observed = (...stamps: number[]) => {
    const time = observedTime()
    for (const at of stamps) advance(time, at)
    return time.ms
  }

  it('adds up what passed between samples', () => {
    expect(observed(1000, 2000, 4000)).toBe(3000)
  })

  it('does not count a hole, nor a clock that is set', () => {
    expect(observed(1000, 2000, 9_000_000, 9_001_000)).toBe(2000)
    expect(observed(9_000_000, 9_001_000, 1000, 2000)).toBe(2000)
  })

  it('refuses a sample that comes late, and goes on from the newest', () => {
    const time = observedTime()
    advance(time, 10_000)
    expect(advance(time, 9000)).toBe(false)
    expect(advance(time, 11_000)).toBe(true)
    expect(time.ms).toBe(1000)
  })

  it('never runs back', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1e7 })), (stamps) => {
        const time = observedTime()
        let last = 0
        for (const at of stamps) {
          advance(time, at)
          expect(time.ms).toBeGreaterThanOrEqual(last)
          last = time.ms
        }
      }),
    )
  })
})
