import { describe, expect, it } from 'vitest'
import { bridged, lonePoints, longestHole } from './holes.ts'

describe('a line', () => {
  it('goes on over silence that is usual, and is broken where it lasts much longer', () => {
    const every3rd = [1, null, null, 2, null, null, 3, null, null, 4]
    expect(longestHole(every3rd)).toBe(12)
    expect(bridged(every3rd, 12)).toEqual([1, undefined, undefined, 2, undefined, undefined, 3, undefined, undefined, 4])
    const silent = [1, 2, 3, 3, 3, null, null, null, null, 4, null, null, null, null, null, 5]
    expect(longestHole(silent)).toBe(4)
    expect(bridged(silent, 4)).toEqual([1, 2, 3, 3, 3, undefined, undefined, undefined, undefined, 4, null, null, null, null, null, 5])
  })

  it('begins with its first figure and ends with its last', () => {
    expect(bridged([null, 1, null, 2, null], 9)).toEqual([null, 1, undefined, 2, null])
    expect(bridged([null, null], 9)).toEqual([null, null])
    expect([longestHole([]), longestHole([null, 7])]).toEqual([0, 0])
  })

  it('is broken by what is not finite, however short that was', () => {
    expect(bridged([1, Number.NaN, 2], 9)).toEqual([1, Number.NaN, 2])
  })

  it('has points that are lines of their own', () => {
    expect(lonePoints([1, null, 2, undefined, 3, null, 4])).toEqual([0, 6])
    expect(lonePoints([null, 5, undefined, null])).toEqual([1])
    expect(lonePoints([1, undefined, 2])).toBe(null)
    expect(lonePoints([])).toBe(null)
  })
})
