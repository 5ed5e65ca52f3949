import { expect, it } from 'vitest'
import { findingWith } from '../../src/core/model.fixture.ts'
import type { Run } from '../../src/core/model.ts'
import { endingMarks } from './ending-marks.ts'

const run = (id: string, endedAt: number | null, outcome: Run['outcome']) => ({ id, name: `run ${id}`, endedAt, outcome }) as Run

it('marks the ends of runs, except of those that go on or whose death is a finding', () => {
  const death = findingWith({ detector: 'run_died' })
  const about = { ...death, subject: { ...death.subject, run: 'b' } }
  const runs = [run('a', 10, 'success'), run('b', 20, 'oom'), run('c', null, null), run('d', 30, null)]
  expect(endingMarks(runs, [about])).toEqual([
    { at: 10, label: 'run a finished', tone: 'muted' },
    { at: 30, label: 'run d ended', tone: 'muted' },
  ])
})
