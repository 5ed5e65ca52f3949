import { expect, it } from 'vitest'
import { columnOf, graphRows } from './graph.ts'

it('puts a moment into the column of its value', () => {
  const width = 5
  for (const phase of [0, 1])
    for (let back = 0; back < width * 2 - phase; back++) {
      // One value that is not a gap, `back` steps before the newest.
      const values = Array.from({ length: width * 2 - phase }, (_, index) => (index === width * 2 - phase - 1 - back ? 1 : Number.NaN))
      const drawn = [...(graphRows(values, width, 1, true, phase)[0] ?? '')].findIndex((cell) => cell !== ' ')
      expect(columnOf(60_000 - back * 1000, 60_000, 1000, width, phase), `${back} steps back, phase ${phase}`).toBe(drawn)
    }
})

it('has no column for what is too long ago, and the last one for what came just after the newest value', () => {
  expect(columnOf(0, 60_000, 1000, 5, 0)).toBeNull()
  expect(columnOf(60_900, 60_000, 1000, 5, 0)).toBe(4)
  expect(columnOf(61_500, 60_000, 1000, 5, 1)).toBe(4)
})
