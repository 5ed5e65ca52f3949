import { describe, expect, it } from 'vitest'
import { CUSTOM, PHASE } from '../../../../src/core/curve-fields.ts'
import { byStep, columnOf, curveOfAnswer, curveOfSteps, namesOf, withSteps } from './curve.ts'
import { stepWith } from './step.fixture.ts'

describe('curveOfAnswer', () => {
  it('reads columns, and NaN that came as text', () => {
    const curve = curveOfAnswer({
      id: 'r',
      fields: ['loss'],
      stride: 2,
      data: [
        [1, 2, 3],
        [10, 20, 30],
        [0.5, 'NaN', null],
      ],
    })
    expect(curve.steps).toEqual([1, 2, 3])
    expect(curve.at).toEqual([10, 20, 30])
    expect(columnOf(curve, 'loss')).toEqual([0.5, Number.NaN, null])
    expect(curve.stride).toBe(2)
  })
})

describe('withSteps', () => {
  const first = curveOfSteps([stepWith({ step: 1, at: 10, loss: 3 }), stepWith({ step: 2, at: 20, loss: 2, phaseSeconds: { data: 0.1 } })])

  it('keeps all columns equally long', () => {
    const curve = withSteps(first, [stepWith({ step: 3, at: 30, custom: { accuracy: 0.7 } })])
    expect([...curve.columns.values()].map((values) => values.length)).toEqual([3, 3, 3])
    expect(columnOf(curve, 'loss')).toEqual([3, 2, null])
    expect(columnOf(curve, `${PHASE}data`)).toEqual([null, 0.1, null])
    expect(columnOf(curve, `${CUSTOM}accuracy`)).toEqual([null, null, 0.7])
    expect(namesOf(curve, PHASE)).toEqual(['data'])
    expect(namesOf(curve, CUSTOM)).toEqual(['accuracy'])
  })

  it('does not take what it holds already, and does not change what was', () => {
    expect(withSteps(first, [stepWith({ step: 2, at: 20, loss: 9 })])).toBe(first)
    withSteps(first, [stepWith({ step: 3, at: 30, loss: 1 })])
    expect(columnOf(first, 'loss')).toEqual([3, 2])
  })

  it('distinguishes a field that was never reported from one that was', () => {
    expect(columnOf(first, 'gradientNorm')).toBeNull()
  })
})

describe('byStep', () => {
  it('lets the later try of a step count', () => {
    const curve = byStep(curveOfSteps([1, 2, 3, 2, 3, 4].map((step, index) => stepWith({ step, at: index, loss: index * 10 }))))
    expect(curve.steps).toEqual([1, 2, 3, 4])
    expect(columnOf(curve, 'loss')).toEqual([0, 30, 40, 50])
  })

  it('leaves a curve that only goes forward as it is', () => {
    const curve = curveOfSteps([stepWith({ step: 1, at: 1, loss: 1 }), stepWith({ step: 2, at: 2, loss: 1 })])
    expect(byStep(curve)).toBe(curve)
  })
})
