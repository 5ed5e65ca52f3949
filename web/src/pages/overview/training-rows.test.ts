import { describe, expect, it } from 'vitest'
import { KnownRuns } from '../../../../src/core/known/runs.ts'
import type { Finding, Run, TrainingStep } from '../../../../src/core/model.ts'
import type { RunListed } from '../../answers.ts'
import { trainingRows } from './training-rows.ts'

const NOW = 1_000_000_000

function run(id: string, more: Partial<Run> = {}): Run {
  return { id, name: id, user: 'ada', gpus: ['0'], totalSteps: 1000, startedAt: 0, endedAt: null, outcome: null, ...more } as Run
}

function step(name: string, more: Partial<TrainingStep> = {}): TrainingStep {
  return { run: name, rank: 0, step: 400, at: NOW - 1000, loss: 1.5, stepSeconds: 2, throughputPerSecond: 90, ...more } as TrainingStep
}

const rows = (
  runs: readonly Run[],
  steps: readonly TrainingStep[],
  listed: readonly Partial<RunListed>[] = [],
  findings: readonly Finding[] = [],
) => {
  const known = new KnownRuns()
  for (const one of runs) known.acceptRun(one)
  known.acceptSteps(steps)
  return trainingRows([...known.values()], new Map(listed.map((one) => [one.id ?? '', one as RunListed])), findings, NOW)
}

describe('trainingRows', () => {
  it('joins the run with its latest step and the mean of its steps', () => {
    const [row] = rows([run('a')], [step('a')], [{ id: 'a', training: { meanStepSeconds: 3, loss: 9 } }])
    expect(row).toMatchObject({ step: 400, progress: 0.4, etaSeconds: 1800, loss: 1.5, throughputPerSecond: 90 })
  })

  it('takes the figures of the list before the first step is heard', () => {
    const [row] = rows([run('a')], [], [{ id: 'a', training: { lastStep: 10, loss: 'NaN', meanStepSeconds: 0.5 } }])
    expect(row).toMatchObject({ step: 10, loss: Number.NaN, etaSeconds: 495 })
  })

  it('leaves out what has ended, and knows no end where no number of steps was given', () => {
    const [row, ...others] = rows([run('a', { endedAt: 5 }), run('b', { totalSteps: null })], [step('b')])
    expect(row).toMatchObject({ id: 'b', progress: null, etaSeconds: null })
    expect(others).toEqual([])
  })

  it('has no time left for a run of a recording that has ended', () => {
    const known = new KnownRuns()
    known.acceptRun(run('a', { endedAt: NOW, outcome: 'oom' }))
    known.acceptSteps([step('a')])
    expect(trainingRows([...known.values()], new Map(), [], NOW, true)).toMatchObject([{ step: 400, progress: 0.4, etaSeconds: null }])
  })

  it('shows a run of which only steps are known, as long as they come', () => {
    const list = rows([], [step('demo'), step('old', { at: NOW - 600_000 })])
    expect(list.map(({ id, user }) => [id, user])).toEqual([['demo', null]])
  })

  it('keeps the order of names, and gives each run its findings', () => {
    const finding = { subject: { run: 'b' } } as Finding
    const list = rows([run('b'), run('a')], [], [], [finding])
    expect(list.map(({ id, findings }) => [id, findings.length])).toEqual([
      ['a', 0],
      ['b', 1],
    ])
  })
})
