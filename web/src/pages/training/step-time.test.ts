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
    expect(phaseLayers(curve)?.layers).toEqual([
      { label: 'data', values: [0.25, null, 0] },
      { label: 'forward', values: [0.5, null, 0.5] },
      { label: 'not attributed', values: [0.25, null, 0] },
    ])
  })

  it('has no rest where phases are all there is, and is nothing without phases', () => {
    expect(phaseLayers(curveOfSteps([stepWith({ at: 1, stepSeconds: 1, phaseSeconds: { all: 1 } })]))?.layers).toHaveLength(1)
    expect(phaseLayers(curveOfSteps([stepWith({ at: 1, stepSeconds: 1 })]))).toBeNull()
  })

  it('sums up phases for which there is no color', () => {
    const phaseSeconds = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`p${index}`, 1]))
    const layers = phaseLayers(curveOfSteps([stepWith({ at: 1, phaseSeconds })]))?.layers
    expect(layers).toHaveLength(8)
    expect(layers?.at(-1)).toEqual({ label: 'other and not attributed', values: [3] })
  })

  it('shows one clock in the order of a step: the GPU’s where most steps have it', () => {
    const both = { backward: 9, data: 9, 'backward@gpu': 0.5, 'data@gpu': 0.25 }
    const steps = [1, 2, 3].map((at) => stepWith({ at, step: at, stepSeconds: 1, phaseSeconds: both }))
    const shown = phaseLayers(curveOfSteps(steps))
    expect(shown?.isByGpu).toBe(true)
    expect(shown?.layers.map(({ label, values }) => [label, values[0]])).toEqual([
      ['data', 0.25],
      ['backward', 0.5],
      ['not attributed', 0.25],
    ])
    const seldom = [...steps.slice(0, 1), ...[4, 5].map((at) => stepWith({ at, step: at, stepSeconds: 20, phaseSeconds: { data: 9 } }))]
    expect(phaseLayers(curveOfSteps(seldom))).toMatchObject({ isByGpu: false, layers: [{ label: 'data' }, { label: 'backward' }, {}] })
  })
})
