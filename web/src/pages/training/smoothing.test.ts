import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSmoothing, smoothed } from './smoothing.ts'

describe('smoothed', () => {
  it('is the figures themselves at weight 0', () => {
    expect(smoothed([3, 1, 2], 0)).toEqual([3, 1, 2])
  })

  it('begins at the first figure, not at zero', () => {
    const [first, second] = smoothed([10, 20], 0.9)
    expect(first).toBeCloseTo(10)
    // (0.1·0.9·10 + 0.1·20) ÷ 0.19
    expect(second).toBeCloseTo(15.263, 3)
  })

  it('leaves gaps where nothing is known or nothing is finite, and goes on behind them', () => {
    const result = smoothed([4, null, Number.NaN, Number.POSITIVE_INFINITY, 4], 0.5)
    expect(result).toEqual([4, null, null, null, 4])
  })

  it('never leaves the range of the figures', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1 }),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (values, weight) => {
          const low = Math.min(...values) - 1e-6
          const high = Math.max(...values) + 1e-6
          return smoothed(values, weight).every((value) => value !== null && value >= low && value <= high)
        },
      ),
    )
  })
})

describe('parseSmoothing', () => {
  it('takes what an address says, within bounds', () => {
    expect(parseSmoothing('0.5', 0.6)).toBe(0.5)
    expect(parseSmoothing('7', 0.6)).toBe(0.99)
    expect(parseSmoothing('-1', 0.6)).toBe(0)
    expect(parseSmoothing('abc', 0.6)).toBe(0.6)
    expect(parseSmoothing(undefined, 0.6)).toBe(0.6)
  })
})
