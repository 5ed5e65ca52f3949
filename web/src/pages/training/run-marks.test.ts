import { describe, expect, it } from 'vitest'
import { findingWith } from '../../../../src/core/model.fixture.ts'
import { curveOfSteps } from './curve.ts'
import { joinedFindings, marksOfFindings } from './run-marks.ts'
import { stepWith } from './step.fixture.ts'

const curve = curveOfSteps([10, 20, 30].map((step) => stepWith({ step, at: step * 100, loss: 1 })))

describe('marksOfFindings', () => {
  const spike = findingWith({ detector: 'loss_spike', message: 'up', since: 1500, severity: 'critical' })

  it('marks the moment, or the step that follows it', () => {
    expect(marksOfFindings([spike], 'time', curve)).toEqual([{ at: 1500, label: 'loss_spike: up', tone: 'critical' }])
    expect(marksOfFindings([spike], 'step', curve)[0]?.at).toBe(20)
  })

  it('goes by the step that the evidence names', () => {
    expect(marksOfFindings([{ ...spike, evidence: { step: 14 } }], 'step', curve)[0]?.at).toBe(14)
  })

  it('takes the last step for what came after it, and none without steps', () => {
    expect(marksOfFindings([{ ...spike, since: 9999 }], 'step', curve)[0]?.at).toBe(30)
    expect(marksOfFindings([spike], 'step', curveOfSteps([]))).toEqual([])
  })
})

describe('joinedFindings', () => {
  it('has each problem once, the newest first, with its newer message', () => {
    const old = findingWith({ fingerprint: 'a', since: 1, message: 'old' })
    const joined = joinedFindings([old, findingWith({ fingerprint: 'b', since: 5 })], [{ ...old, message: 'new' }])
    expect(joined.map(({ fingerprint, message }) => [fingerprint, message])).toEqual([
      ['b', ''],
      ['a', 'new'],
    ])
  })
})
