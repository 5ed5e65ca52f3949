import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { median, push, rollingMedian } from './rolling-median.ts'

const plain = (values: readonly number[]) => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half] : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2
}

describe('rolling median', () => {
  it('is the median of the last values, however they come', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 60 }),
        (cap, values) => {
          const window = rollingMedian(cap)
          for (let index = 0; index < values.length; index++) {
            push(window, values[index] ?? 0)
            expect(median(window)).toBe(plain(values.slice(Math.max(0, index + 1 - cap), index + 1)))
          }
        },
      ),
    )
  })

  it('has no median of nothing', () => {
    expect(median(rollingMedian(3))).toBeNaN()
  })
})
