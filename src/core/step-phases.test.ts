import { describe, expect, it } from 'vitest'
import { PhaseSums, phasesBy, phasesOf, sharesOf, wholeSeconds } from './step-phases.ts'

describe('the phases of a step', () => {
  it('have one name each, whatever a trainer calls them', () => {
    expect(phasesBy('host', { data_wait: 1, input: 2, allreduce: 3, mine: 4 })).toEqual({ data: 3, sync: 3, mine: 4 })
    expect(phasesBy('host', { data: Number.NaN, forward: -1, backward: Number.POSITIVE_INFINITY })).toBeNull()
    expect(phasesBy('host', null)).toBeNull()
  })

  it('are by one clock: the GPU’s where the step has it, and the host’s for what not every step has', () => {
    const both = { data: 5, checkpoint: 7, 'data@gpu': 1, 'forward@gpu': 2, 'checkpoint@gpu': 6 }
    expect(phasesOf({ phaseSeconds: both })).toEqual({ data: 1, forward: 2, checkpoint: 7 })
    expect(phasesBy('host', both)).toEqual({ data: 5, checkpoint: 7 })
  })

  it('add up to the whole with what is not attributed', () => {
    expect(sharesOf({ backward: 0.5, data: 0.25 }, 1)).toEqual([
      { phase: 'data', ratio: 0.25 },
      { phase: 'backward', ratio: 0.5 },
      { phase: 'not attributed', ratio: 0.25 },
    ])
    expect(wholeSeconds({ stepSeconds: 1 }, { data: 2, forward: 1 })).toBe(3)
    expect(sharesOf({}, 0)).toEqual([])
  })
})

describe('the phases of many steps', () => {
  it('weigh a step by its length, and survive being saved', () => {
    const sums = new PhaseSums()
    sums.add({ stepSeconds: 1, phaseSeconds: { forward: 1 } })
    sums.add({ stepSeconds: 3, phaseSeconds: { forward: 1, evaluation: 2 } })
    sums.add({ stepSeconds: 100, phaseSeconds: null })
    const shares = [
      { phase: 'forward', ratio: 0.5 },
      { phase: 'evaluation', ratio: 0.5 },
    ]
    expect(sums.shares()).toEqual(shares)
    expect(PhaseSums.from(JSON.parse(JSON.stringify(sums))).shares()).toEqual(shares)
    expect(PhaseSums.from(undefined).shares()).toEqual([])
  })

  it('take what every step has from the GPU, and what some have from the host', () => {
    const sums = new PhaseSums()
    for (let step = 0; step < 10; step++)
      sums.add({
        stepSeconds: step === 9 ? 11 : 1,
        phaseSeconds: {
          data: 0.9,
          ...(step === 9 ? { evaluation: 10 } : {}),
          ...(step % 2 === 0 ? { 'data@gpu': 0.1, 'forward@gpu': 0.9 } : {}),
        },
      })
    const shares = Object.fromEntries(sums.shares().map(({ phase, ratio }) => [phase, Math.round(ratio * 1000) / 1000]))
    expect(shares).toEqual({ data: 0.05, forward: 0.45, evaluation: 0.5 })
  })
})
