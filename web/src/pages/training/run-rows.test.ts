import { describe, expect, it } from 'vitest'
import { runWith } from '../../../../src/core/model.fixture.ts'
import type { RunListed } from '../../answers.ts'
import { filteredRows, keptRow, parseRuns, runRows } from './run-rows.ts'
import { stepWith } from './step.fixture.ts'

const listedRun = (parts: Partial<RunListed>): RunListed => ({ ...runWith({ name: 'name' }), ...parts })

describe('keptRow', () => {
  it('takes the stream where it is ahead, and works out what is left', () => {
    const run = listedRun({ totalSteps: 100, training: { lastStep: 10, lastStepAt: 1000, loss: 3, meanStepSeconds: 2 } })
    const row = keptRow(run, stepWith({ step: 20, at: 2000, loss: 2 }), 3000)
    expect(row).toMatchObject({ step: 20, loss: 2, progress: 0.2, etaMs: 160_000, state: 'running', durationMs: 3000 })
    expect(keptRow(run, stepWith({ step: 5, at: 500, loss: 9 }), 3000)).toMatchObject({ step: 10, loss: 3 })
  })

  it('reads NaN that came as text', () => {
    expect(keptRow(listedRun({ training: { loss: 'NaN' } }), undefined, 0).loss).toBeNaN()
  })

  it('distinguishes silent from running, by the pace of the run', () => {
    const at = (meanStepSeconds: number) =>
      keptRow(listedRun({ training: { lastStepAt: 0, lastStep: 1, meanStepSeconds } }), undefined, 120_000).state
    expect(at(1)).toBe('silent')
    expect(at(30)).toBe('running')
  })

  it('has an outcome and no time left when it is over', () => {
    const row = keptRow(
      listedRun({ endedAt: 50, outcome: 'oom', totalSteps: 10, training: { lastStep: 1, meanStepSeconds: 1 } }),
      undefined,
      99,
    )
    expect(row).toMatchObject({ state: 'oom', etaMs: null, durationMs: 50 })
    expect(keptRow(listedRun({ endedAt: 50 }), undefined, 99).state).toBe('ended')
  })
})

describe('runRows', () => {
  it('puts running ones first, and adds those that are only in the stream', () => {
    const listed = [
      listedRun({ id: 'old', startedAt: 1 }),
      listedRun({ id: 'over', startedAt: 9, endedAt: 10 }),
      listedRun({ id: 'new', startedAt: 5 }),
    ]
    const rows = runRows(listed, new Map([['sim', stepWith({ run: 'sim', at: 3 })]]), 20)
    expect(rows.map(({ id }) => id)).toEqual(['new', 'old', 'sim', 'over'])
    expect(rows[2]).toMatchObject({ isSeenOnly: true, startedAt: null })
  })

  it('leaves those that are only seen in their places, whoever took the latest step', () => {
    const order = (first: number, second: number) => {
      const latest = new Map([
        ['run-10', stepWith({ run: 'run-10', at: first })],
        ['run-9', stepWith({ run: 'run-9', at: second })],
      ])
      return runRows([], latest, 10_000).map(({ id }) => id)
    }
    expect(order(9000, 9500)).toEqual(['run-9', 'run-10'])
    expect(order(9500, 9000)).toEqual(['run-9', 'run-10'])
  })
})

describe('filteredRows', () => {
  const rows = runRows(
    [listedRun({ id: 'a', name: 'Llama', user: 'ada', gpus: ['3'] }), listedRun({ id: 'b', name: 'bert', endedAt: 1, outcome: 'nan' })],
    new Map(),
    0,
  )
  const ids = (text: string, state: 'all' | 'running' | 'ended' = 'all') => filteredRows(rows, text, state).map(({ id }) => id)

  it('looks for every word everywhere', () => {
    expect(ids('')).toEqual(['a', 'b'])
    expect(ids('llama ADA')).toEqual(['a'])
    expect(ids('gpu 3')).toEqual(['a'])
    expect(ids('nan')).toEqual(['b'])
    expect(ids('llama nan')).toEqual([])
  })

  it('keeps running or ended ones', () => {
    expect(ids('', 'running')).toEqual(['a'])
    expect(ids('', 'ended')).toEqual(['b'])
  })
})

describe('parseRuns', () => {
  it('takes each id once, and six at most', () => {
    expect(parseRuns('a,b,,a')).toEqual(['a', 'b'])
    expect(parseRuns('1,2,3,4,5,6,7')).toHaveLength(6)
    expect(parseRuns(undefined)).toEqual([])
  })
})
