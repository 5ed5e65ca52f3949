import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aligned, lineOf } from './alignment.ts'
import { curveOfSteps } from './curve.ts'
import { stepWith } from './step.fixture.ts'

describe('lineOf', () => {
  const curve = curveOfSteps([5, 6].map((step, index) => stepWith({ step, at: 1000 + index * 500, loss: step })))

  it('is over steps, or over the time since the first one', () => {
    expect(lineOf(curve, 'loss', 'step')).toEqual({ x: [5, 6], values: [5, 6] })
    expect(lineOf(curve, 'loss', 'elapsed')).toEqual({ x: [0, 500], values: [5, 6] })
  })

  it('is empty of figures that the run never sent', () => {
    expect(lineOf(curve, 'custom:accuracy', 'step').values).toEqual([null, null])
  })
})

describe('aligned', () => {
  it('puts every point of every line on one ascending axis', () => {
    const { x, columns } = aligned([
      { x: [1, 3], values: [10, 30] },
      { x: [2, 3], values: [200, 300] },
    ])
    expect(x).toEqual([1, 2, 3])
    expect(columns).toEqual([
      [10, null, 30],
      [null, 200, 300],
    ])
  })

  it('loses and invents nothing', () => {
    const line = fc.uniqueArray(fc.integer({ min: 0, max: 50 })).map((x) => {
      const sorted = [...x].sort((a, b) => a - b)
      return { x: sorted, values: sorted.map((value) => value * 2) }
    })
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), (lines) => {
        const { x, columns } = aligned(lines)
        return lines.every((one, index) => {
          const known = (columns[index] ?? []).flatMap((value, place) => (value === null ? [] : [[x[place], value]]))
          return JSON.stringify(known) === JSON.stringify(one.x.map((at, place) => [at, one.values[place]]))
        })
      }),
    )
  })
})
