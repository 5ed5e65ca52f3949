import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BandColumns, columnStart, differencesOf } from '../../../src/core/memory/snapshot-picture.ts'
import { ColumnLevels } from './column-levels.ts'

function columnsOf(bands: readonly (readonly number[])[], to: number): BandColumns {
  const count = bands[0]?.length ?? 0
  const plain = (values: readonly number[]) => differencesOf(Float64Array.from(values))
  const starts = Array.from({ length: count }, (_, column) => columnStart({ from: 0, to }, count, column))
  const sums = starts.map((_, column) => bands.reduce((sum, band) => sum + (band[column] ?? 0), 0))
  return {
    from: 0,
    to,
    highestAt: plain(starts),
    timesUs: null,
    bands: bands.map(plain),
    least: plain(sums),
    reserved: plain(sums),
  }
}

const amounts = fc.array(fc.nat(1000), { minLength: 1, maxLength: 70 })

describe('columns at several resolutions', () => {
  it('show the highest column of every pixel, and so the peak at any zoom that has it', () => {
    fc.assert(
      fc.property(amounts, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 90 }), (values, perColumn, pixels) => {
        const levels = new ColumnLevels(columnsOf([values], values.length * perColumn))
        const shown = levels.pixelColumns(0, levels.to, pixels)
        expect(Math.max(...[...shown].map((column) => levels.totals[column] as number))).toBe(Math.max(...values))
        expect([...shown].every((column) => column >= 0 && column < values.length)).toBe(true)
      }),
    )
  })

  it('show nothing outside of the file', () => {
    const levels = new ColumnLevels(columnsOf([[1, 2]], 10))
    expect([...levels.pixelColumns(-10, 20, 6)]).toEqual([-1, -1, 0, 1, -1, -1])
    expect([...new ColumnLevels(columnsOf([[]], 0)).pixelColumns(0, 1, 3)]).toEqual([-1, -1, -1])
  })

  it('know the column of each event, also where they are of different sizes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(200), (count, more) => {
        const to = count + more
        const levels = new ColumnLevels(columnsOf([Array.from({ length: count }, () => 1)], to))
        for (let event = 0; event < to; event++) {
          const column = levels.columnOf(event)
          expect(columnStart(levels, count, column)).toBeLessThanOrEqual(event)
          expect(columnStart(levels, count, column + 1)).toBeGreaterThan(event)
        }
      }),
    )
  })

  it('name the band under the pointer', () => {
    const levels = new ColumnLevels(columnsOf([[10], [0], [5]], 1))
    expect([0, 9, 10, 14, 15].map((bytes) => levels.bandAt(0, bytes))).toEqual([0, 0, 2, 2, -1])
  })
})
