import { describe, expect, it } from 'vitest'
import { bandsOfStretches, drawable, marksOfStretches, stretchesOf } from './not-finite.ts'

const NAN = Number.NaN
const INF = Number.POSITIVE_INFINITY

describe('stretchesOf', () => {
  it('joins points in a row, over points without a figure', () => {
    expect(stretchesOf([1, 2, 3, 4, 5, 6], [1, NAN, null, INF, 2, NAN])).toEqual([
      { from: 2, to: 4, points: 2, what: 'NaN, ∞' },
      { from: 6, to: 6, points: 1, what: 'NaN' },
    ])
  })

  it('finds nothing in a healthy curve', () => {
    expect(stretchesOf([1, 2], [1, null])).toEqual([])
  })

  it('becomes marks and bands', () => {
    const stretches = stretchesOf([1, 2, 9], [NAN, NAN, -INF])
    expect(marksOfStretches('loss', stretches).map(({ at, label }) => [at, label])).toEqual([[1, 'loss is NaN, −∞ (3 points in a row)']])
    expect(bandsOfStretches('loss', stretches)).toHaveLength(1)
    expect(bandsOfStretches('loss', stretchesOf([1], [NAN]))).toEqual([])
  })
})

describe('drawable', () => {
  it('leaves out what has no place on a logarithmic scale, and nothing else', () => {
    expect(drawable([1, 0, -1, NAN, INF, null], false)).toEqual([1, 0, -1, NAN, INF, null])
    expect(drawable([1, 0, -1, NAN, -INF, null], true)).toEqual([1, null, null, NAN, null, null])
  })
})
