import { describe, expect, it } from 'vitest'
import { findingWith } from '../../../../src/core/model.fixture.ts'
import type { RankRow } from '../../answers.ts'
import { judgedRanks, shownRanks } from './rank-order.ts'

const row = (rank: number, seconds: number | null, relativeSpeed: number | null = 1): RankRow => ({
  rank,
  pid: null,
  lastStep: 10,
  lastAt: 0,
  steps: 10,
  meanStepSeconds: seconds,
  lastStepSeconds: seconds,
  memoryAllocatedBytes: null,
  behindSteps: 0,
  relativeSpeed,
})

describe('judgedRanks', () => {
  it('marks who is slow by its speed', () => {
    const ranks = judgedRanks([row(0, 1), row(1, 2, 0.5), row(2, null, null)], [])
    expect(ranks.map(({ straggles }) => straggles)).toEqual([null, '100% slower than the others', null])
    expect(ranks.map(({ share }) => share)).toEqual([0.5, 1, 0])
  })

  it("takes the detector's word, while it stands", () => {
    const found = findingWith({ detector: 'straggler', message: 'slow', subject: { rank: 0 } })
    expect(judgedRanks([row(0, 1)], [found])[0]?.straggles).toBe('slow')
    expect(judgedRanks([row(0, 1)], [{ ...found, state: 'resolved' }])[0]?.straggles).toBeNull()
  })

  it('prefers recent steps to the mean of all', () => {
    expect(judgedRanks([{ ...row(0, 1), recentStepSeconds: 3 }], [])[0]?.stepSeconds).toBe(3)
  })
})

describe('shownRanks', () => {
  const many = judgedRanks(
    Array.from({ length: 100 }, (_, rank) => row(rank, rank === 99 ? 9 : 1, rank === 99 ? 0.1 : 1)),
    [],
  )

  it('keeps the slowest of very many', () => {
    const { rows, leftOut } = shownRanks(many, 'rank')
    expect(rows).toHaveLength(64)
    expect(leftOut).toBe(36)
    expect(rows.at(-1)?.rank).toBe(99)
    expect(shownRanks(many, 'slowest').rows[0]?.rank).toBe(99)
  })
})
