import { expect, it } from 'vitest'
import { curveOfSteps, EMPTY_CURVE } from './curve.ts'
import { lastSpan, wholeSpan } from './run-span.ts'
import { stepWith } from './step.fixture.ts'

const MINUTE = 60_000
/** A step each minute for an hour, numbered from 1. */
const curve = curveOfSteps(Array.from({ length: 60 }, (_, index) => stepWith({ step: index + 1, at: index * MINUTE, loss: 1 })))

it('shows the last five minutes of a run that is over, by time and by step', () => {
  expect(lastSpan('time', curve, 0, 59.5 * MINUTE)).toEqual({ from: 54.5 * MINUTE, to: 59.5 * MINUTE })
  expect(lastSpan('step', curve, 0, 59.5 * MINUTE)).toEqual({ from: 56, to: 60 })
})

it('shows all of a run that was hardly longer, or that has no steps then', () => {
  expect(lastSpan('time', curve, 54.3 * MINUTE, 59 * MINUTE)).not.toBeNull()
  const short = curveOfSteps([stepWith({ step: 1, at: 0 }), stepWith({ step: 2, at: 5.2 * MINUTE })])
  expect(lastSpan('time', short, 0, 5.2 * MINUTE)).toBeNull()
  expect(lastSpan('step', EMPTY_CURVE, 0, 60 * MINUTE)).toBeNull()
})

it('covers the whole run, from its start to its end or its last step', () => {
  expect(wholeSpan('time', curve, -MINUTE, 10 * MINUTE)).toEqual({ from: -MINUTE, to: 59 * MINUTE })
  expect(wholeSpan('step', curve, 0, 0)).toEqual({ from: 1, to: 60 })
  expect(wholeSpan('time', EMPTY_CURVE, null, 5 * MINUTE)).toEqual({ from: 4 * MINUTE, to: 5 * MINUTE })
})
