import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fitLine, mannKendall, median, medianAbsoluteDeviation, quantile, theilSen } from './statistics.ts'

const values = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 40 })
const positions = (n: number) => Array.from({ length: n }, (_, i) => i)

describe('statistics', () => {
  it('takes the median of odd and even counts, and 0 of none', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 2, 3])).toBe(2.5)
    expect(median([])).toBe(0)
  })

  it('keeps a quantile between the extremes and leaves its input alone', () => {
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (list, q) => {
        const copy = [...list]
        const got = quantile(list, q)
        expect(list).toEqual(copy)
        expect(got).toBeGreaterThanOrEqual(Math.min(...list) - 1e-9)
        expect(got).toBeLessThanOrEqual(Math.max(...list) + 1e-9)
      }),
    )
  })

  it('measures spread as the standard deviation of a normal distribution would be', () => {
    expect(medianAbsoluteDeviation([1, 1, 1])).toBe(0)
    expect(medianAbsoluteDeviation([-1, 0, 1])).toBeCloseTo(1.4826)
  })

  it('finds the slope in spite of a third of wild values', () => {
    const y = positions(30).map((i) => (i % 3 === 0 ? 1000 * ((i % 2) - 0.5) : 2 * i))
    expect(theilSen(positions(30), y)).toBeCloseTo(2, 0)
  })

  it('scores a rise high, a fall low and a constant series 0', () => {
    expect(mannKendall(positions(12))).toBeGreaterThan(4)
    expect(mannKendall(positions(12).map((i) => -i))).toBeLessThan(-4)
    expect(mannKendall(positions(12).map(() => 5))).toBe(0)
  })

  it('fits a line exactly and says how sure it is', () => {
    const x = positions(10)
    const exact = fitLine(
      x,
      x.map((i) => 3 * i + 1),
    )
    expect(exact?.slope).toBeCloseTo(3)
    expect(exact?.intercept).toBeCloseTo(1)
    expect(exact?.slopeError).toBeCloseTo(0)
    const rough = fitLine(
      x,
      x.map((i) => 3 * i + (i % 2)),
    )
    expect(rough?.slopeError).toBeGreaterThan(0.01)
    expect(fitLine([1, 2], [1, 2])).toBe(null)
    expect(fitLine([1, 1, 1], [1, 2, 3])).toBe(null)
  })
})
