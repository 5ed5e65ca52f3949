import { expect, it } from 'vitest'
import { niceTop } from './day-scale.ts'

it('ends the scale at a round number above the highest bar', () => {
  expect([0.01, 0.3, 3, 24, 23.9, 191.9, 192, 1000].map(niceTop)).toEqual([0.01, 0.5, 5, 24, 25, 192, 192, 1008])
})
