import { describe, expect, it } from 'vitest'
import { curveOfSteps } from './curve.ts'
import { metricFormat, metricName, metricsOf } from './metric-names.ts'
import { stepWith } from './step.fixture.ts'

describe('metricsOf', () => {
  it('names what any run reports, the usual ones first', () => {
    const a = curveOfSteps([stepWith({ at: 1, loss: 1, custom: { zeta: 1, accuracy: 1 } })])
    const b = curveOfSteps([stepWith({ at: 1, learningRate: 1, phaseSeconds: { data: 1 } })])
    expect(metricsOf([a, b])).toEqual(['loss', 'learningRate', 'custom:accuracy', 'custom:zeta', 'phase:data'])
    expect(metricsOf([])).toEqual([])
  })
})

describe('metricName and metricFormat', () => {
  it('have words and units', () => {
    expect(metricName('stepSeconds')).toBe('Step time')
    expect(metricName('custom:accuracy')).toBe('accuracy')
    expect(metricFormat('memoryAllocatedBytes')(1024 ** 3)).toBe('1.0 GiB')
    expect(metricFormat('phase:data')(0.5)).toBe('500 ms')
    expect(metricFormat('loss')(Number.NaN)).toBe('NaN')
  })
})
