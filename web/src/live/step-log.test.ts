import { describe, expect, it } from 'vitest'
import { stepWith } from '../pages/training/step.fixture.ts'
import { StepLog } from './step-log.ts'

describe('StepLog', () => {
  it('keeps the steps of each rank of each run', () => {
    const log = new StepLog()
    log.add(stepWith({ run: 'a', rank: 0, step: 1 }))
    log.add(stepWith({ run: 'a', rank: 10, step: 1 }))
    log.add(stepWith({ run: 'a', rank: 2, step: 1 }))
    log.add(stepWith({ run: 'x@a', rank: 3, step: 1 }))
    expect(log.of('a', 0).map(({ step }) => step)).toEqual([1])
    expect(log.ranksOf('a')).toEqual([0, 2, 10])
    expect(log.ranksOf('x@a')).toEqual([3])
  })

  it('stays bounded, spans all of the run, and keeps what is not finite', () => {
    const log = new StepLog()
    for (let step = 0; step < 20_000; step++) log.add(stepWith({ step, loss: step === 4321 ? Number.NaN : 1 }))
    const steps = log.of('r', 0)
    expect(steps.length).toBeLessThan(1024)
    expect(steps.length).toBeGreaterThan(400)
    expect(steps[0]?.step).toBe(0)
    expect(steps.at(-1)?.step).toBeGreaterThan(19_900)
    expect(steps.some(({ step }) => step === 4321)).toBe(true)
  })

  it('forgets the run that was silent longest', () => {
    const log = new StepLog()
    for (let run = 0; run < 65; run++) log.add(stepWith({ run: `r${run}` }))
    expect(log.of('r0', 0)).toEqual([])
    expect(log.of('r1', 0)).toHaveLength(1)
  })
})
