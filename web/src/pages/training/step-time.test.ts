import { describe, expect, it } from 'vitest'
import { curveOfSteps } from './curve.ts'
import { stepWith } from './step.fixture.ts'
import { phaseLayers } from './step-time.ts'

describe('phaseLayers', () => {
  it('adds up to the step, with what no phase names as the rest', () => {
    const curve = curveOfSteps([
      stepWith({ at: 1, stepSeconds: 1, phaseSeconds: { data: 0.25, forward: 0.5 } }),
      stepWith({ at: 2, stepSeconds: 1 }),
      stepWith({ at: 3, phaseSeconds: { forward: 0.5 } }),
    ])
    expect(phaseLayers(curve)).toEqual([
      { label: 'data', values: [0.25, null, 0] },
      { label: 'forward', values: [0.5, null, 0.5] },
      { label: 'rest', values: [0.25, null, 0] },
    ])
  })

  it('has no rest where phases are all there is, and is nothing without phases', () => {
    expect(phaseLayers(curveOfSteps([stepWith({ at: 1, stepSeconds: 1, phaseSeconds: { all: 1 } })]))).toHaveLength(1)
    expect(phaseLayers(curveOfSteps([stepWith({ at: 1, stepSeconds: 1 })]))).toBeNull()
  })

  it('sums up phases for which there is no color', () => {
    const phaseSeconds = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`p${index}`, 1]))
    const layers = phaseLayers(curveOfSteps([stepWith({ at: 1, phaseSeconds })]))
    expect(layers).toHaveLength(8)
    expect(layers?.at(-1)).toEqual({ label: 'rest', values: [3] })
  })
})
