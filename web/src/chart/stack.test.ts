import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stackUp } from './stack.ts'

describe('stackUp', () => {
  it('adds each layer to those below it', () => {
    expect(
      stackUp([
        [1, 2],
        [10, 20],
        [100, 200],
      ]),
    ).toEqual([
      [1, 2],
      [11, 22],
      [111, 222],
    ])
  })

  it('knows nothing of a moment at which one layer is not known', () => {
    expect(
      stackUp([
        [1, 2],
        [10, null],
      ]),
    ).toEqual([
      [1, null],
      [11, null],
    ])
  })

  it('ends in the sum of all, whatever they are', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.integer({ min: 0, max: 1e9 }), { minLength: 5, maxLength: 5 }), { minLength: 1, maxLength: 6 }),
        (columns) => {
          const top = stackUp(columns).at(-1)
          expect(top).toEqual(columns[0]?.map((_, index) => columns.reduce((sum, column) => sum + (column[index] ?? 0), 0)))
        },
      ),
    )
  })
})
