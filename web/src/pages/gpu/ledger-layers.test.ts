import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import { ledgerLayers } from './ledger-layers.ts'

function history(at: readonly number[], ...columns: (number | null)[][]): ProcessHistoryAnswer {
  const processes = columns.map((memoryUsedBytes, index) => ({
    pid: index + 1,
    startedAt: 0,
    user: 'ada',
    name: 'python',
    command: null,
    memoryUsedBytes,
  }))
  return { gpu: 'g', stepMs: 10, at, processes }
}

describe('ledgerLayers', () => {
  it('names who holds how much, largest first', () => {
    const layers = ledgerLayers({ at: [0, 5, 10], used: [100, 100, 200], reserved: [7, 7, 7] }, history([0, 10], [30, 30], [60, 160]))
    expect(layers).toEqual([
      { label: 'driver reserve', values: [7, 7, 7] },
      { label: 'python 2 (ada)', values: [60, 60, 160] },
      { label: 'python 1 (ada)', values: [30, 30, 30] },
      { label: 'others', values: [10, 10, 10] },
    ])
  })

  it('shows a gap where the device did not answer', () => {
    const layers = ledgerLayers({ at: [0, 10], used: [null, 5], reserved: [null, null] }, history([0, 10], [3, 3]))
    expect(layers).toEqual([
      { label: 'python 1 (ada)', values: [null, 3] },
      { label: 'others', values: [null, 2] },
    ])
  })

  it('does not hold a figure for longer than it can be true', () => {
    const layers = ledgerLayers({ at: [0, 16, 17], used: [5, 5, 5], reserved: [null, null, null] }, history([0], [4]))
    expect(layers[0]?.values).toEqual([4, 4, 0])
  })

  it('takes a process to keep its share between two of its figures', () => {
    const layers = ledgerLayers({ at: [0, 5], used: [100, 200], reserved: [null, null] }, history([0], [90]))
    expect(layers.map(({ values }) => values)).toEqual([
      [90, 180],
      [10, 20],
    ])
  })

  it('adds up to what is in use, however figures of different moments disagree', () => {
    const bytes = fc.integer({ min: 0, max: 1000 })
    const column = fc.array(bytes, { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(column, fc.array(column, { maxLength: 8 }), (used, columns) => {
        const layers = ledgerLayers({ at: [0, 10, 20, 30], used, reserved: [null, null, null, null] }, history([0, 10, 20, 30], ...columns))
        const sums = used.map((_, index) => layers.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
        sums.forEach((sum, index) => {
          expect(sum).toBeCloseTo(used[index] ?? 0, 6)
        })
      }),
    )
  })
})
