import { describe, expect, it } from 'vitest'
import { KnownRuns } from '../core/known/runs.ts'
import { runWith } from '../core/model.fixture.ts'
import type { Run } from '../core/model.ts'
import { AT, trainingStep } from './screen-data.fixture.ts'
import { RunCourses } from './training-runs.ts'

const run = runWith({ id: 'bert-large', name: 'bert', startedAt: AT })

/** Steps of the fixture are 400 ms apart. */
function etaAfter(steps: number, more: Partial<Run> | null, custom: Record<string, number> | null = null) {
  const runs = new KnownRuns()
  const courses = new RunCourses()
  if (more) runs.acceptRun({ ...run, ...more })
  const taken = Array.from({ length: steps }, (_, index) => trainingStep(index + 1, { custom }))
  runs.acceptSteps(taken)
  courses.accept(taken, runs)
  return courses.views(runs.values(), AT, [], [])[0]?.etaMs
}

describe('the time left of a run', () => {
  it('comes from the total that the run reported', () => {
    expect(etaAfter(10, { totalSteps: 110 })).toBeCloseTo(100 * 400)
    expect(etaAfter(10, { totalSteps: 10 })).toBe(0)
    expect(etaAfter(10, { totalSteps: 5 })).toBe(0)
  })

  it('comes from a custom figure where the run reported none, and the run goes first', () => {
    expect(etaAfter(10, {}, { total_steps: 60 })).toBeCloseTo(50 * 400)
    expect(etaAfter(10, null, { num_train_epochs: 0.02 })).toBeCloseTo(10 * 400, -1)
    expect(etaAfter(10, { totalSteps: 110 }, { total_steps: 60 })).toBeCloseTo(100 * 400)
  })

  it('is unknown without a total, with a single step, and when it is over', () => {
    expect(etaAfter(10, {})).toBe(null)
    expect(etaAfter(1, { totalSteps: 100 })).toBe(null)
    expect(etaAfter(10, { totalSteps: 100, endedAt: AT, outcome: 'success' })).toBe(null)
  })
})
