import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { graphRows, sparkline } from './graph.ts'
import { Series } from './series.ts'

describe('series', () => {
  it('means what comes within a step and leaves gaps as gaps', () => {
    const series = new Series(1000)
    series.push(10_000, 0.2)
    series.push(10_500, 0.4)
    series.push(13_000, 1)
    expect([...series.tail(10)].map((value) => Math.round(value * 100) / 100)).toEqual([0.3, Number.NaN, Number.NaN, 1])
  })

  it('keeps null as a gap and forgives one late tick', () => {
    const series = new Series(1000)
    series.push(1000, 0.5)
    series.push(2000, null)
    series.push(4000, 1)
    expect([...series.tail(10)]).toEqual([0.5, Number.NaN, 1, 1])
  })

  it('is bounded, and begins anew when time goes back', () => {
    const series = new Series(1000)
    for (let second = 0; second < 5000; second++) series.push(second * 1000, 1)
    expect(series.tail(100_000).length).toBe(600)
    series.push(1000, 0.5)
    expect([...series.tail(10)]).toEqual([0.5])
  })
})

describe('graph', () => {
  it('draws two values to a column, zero as a dot, a gap as nothing', () => {
    expect(graphRows([1, 0, Number.NaN, 0.5], 3, 1, false)).toEqual([' ⣇⢠'])
  })

  it('grows over rows', () => {
    expect(graphRows([1, 1], 1, 2, false)).toEqual(['⣿', '⣿'])
    expect(graphRows([0.5, 0.5], 1, 2, false)).toEqual([' ', '⣿'])
  })

  it('is as wide and high as asked, for any values', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double(), { maxLength: 50 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 5 }),
        fc.boolean(),
        (values, width, height, ascii) => {
          const rows = graphRows(values, width, height, ascii)
          expect(rows.map((row) => row.length)).toEqual(new Array(height).fill(width))
          expect(sparkline(values, width, ascii).length).toBe(width)
        },
      ),
    )
  })
})
