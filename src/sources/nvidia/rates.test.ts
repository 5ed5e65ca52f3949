import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CounterRate } from './rates.ts'

describe('the rate of a counter', () => {
  it('needs two readings, and a gap starts anew', () => {
    const rate = new CounterRate()
    expect(rate.update(100, 0)).toBe(null)
    expect(rate.update(300, 500)).toBe(400)
    expect(rate.update(null, 1000)).toBe(null)
    expect(rate.update(900, 1500)).toBe(null)
    expect(rate.update(900, 1500)).toBe(null)
  })

  it('is never negative and never infinite', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.option(fc.nat()), fc.nat(1000))), (readings) => {
        const rate = new CounterRate()
        for (const [value, at] of readings) {
          const result = rate.update(value, at)
          expect(result === null || (result >= 0 && Number.isFinite(result))).toBe(true)
        }
      }),
    )
  })
})
