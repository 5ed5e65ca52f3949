import { describe, expect, it } from 'vitest'
import { shadesOf } from './shades.ts'

describe('shades of a heat map', () => {
  it('follow the order of magnitude of a norm', () => {
    const { of } = shadesOf('gradient_norm', [[0.01, 0.1, 1]])
    expect(of(0.01)).toBe(0)
    expect(of(0.1)).toBeCloseTo(0.5)
    expect(of(1)).toBe(1)
    expect(of(0)).toBe(0)
  })

  it('are from 0 to 1 of a share, whatever is there', () => {
    expect(shadesOf('dead_share', [[0.4, 0.5]]).of(0.4)).toBeCloseTo(0.4)
  })

  it('do not drown in one value that is far off', () => {
    const row = Array.from({ length: 200 }, (_, index) => 1 + index / 200)
    const { of } = shadesOf('activation_mean', [[...row, 1e9]])
    expect(of(1.5)).toBeGreaterThan(0.3)
    expect(of(1e9)).toBe(1)
  })

  it('are none for what is not known, and full for what is not finite', () => {
    const { of } = shadesOf('gradient_norm', [[null, Number.NaN, 2]])
    expect([of(null), of(Number.NaN), of(2)]).toEqual([null, 1, 0.5])
    expect(shadesOf('gradient_norm', []).of(1)).toBe(0.5)
  })
})
