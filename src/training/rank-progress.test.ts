import { describe, expect, it } from 'vitest'
import { applyBatch } from './batch.ts'
import { Progress } from './progress.ts'
import { rankRows } from './rank-progress.ts'

function progressOf(steps: readonly object[]): Progress {
  const progress = new Progress()
  const seqs = new Map<number, number>()
  const lines = steps.map((step) => {
    const { rank } = step as { rank: number }
    seqs.set(rank, (seqs.get(rank) ?? 0) + 1)
    return JSON.stringify({ seq: seqs.get(rank), pid: 100 + rank, local_rank: rank, ...step })
  })
  applyBatch(progress, 'r', Buffer.from(lines.join('\n')), 1.76e12)
  return progress
}

describe('ranks side by side', () => {
  it('show who is behind and who is slow', () => {
    const steps = [0, 1, 2, 3].flatMap((rank) =>
      Array.from({ length: rank === 3 ? 8 : 10 }, (_, index) => ({
        rank,
        step: index + 1,
        t: 1.76e12 + index,
        step_seconds: rank === 3 ? 0.4 : 0.1,
        alloc: { allocated: rank * 100 },
      })),
    )
    const rows = rankRows(progressOf(steps).ranks)
    expect(rows.map(({ rank, behindSteps }) => [rank, behindSteps])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 2],
    ])
    expect(rows[3]).toMatchObject({ pid: 103, localRank: 3, lastStep: 8, steps: 8, lastStepSeconds: 0.4, memoryAllocatedBytes: 300 })
    expect(rows[3]?.meanStepSeconds).toBeCloseTo(0.4)
    expect(rows[3]?.relativeSpeed).toBeCloseTo(0.25)
    expect(rows[0]?.relativeSpeed).toBeCloseTo(1)
  })

  it('say nothing that is not known', () => {
    expect(rankRows(progressOf([{ rank: 0, step: 1, step_seconds: 0.1 }]).ranks)[0]).toMatchObject({ relativeSpeed: null, behindSteps: 0 })
    const rows = rankRows(
      progressOf([
        { rank: 0, step: 1 },
        { rank: 1, step: 1, step_seconds: 'NaN' },
      ]).ranks,
    )
    for (const row of rows)
      expect(row).toMatchObject({ meanStepSeconds: null, lastStepSeconds: null, relativeSpeed: null, memoryAllocatedBytes: null })
  })

  it('come back from the file as they were, and from one of an earlier version', () => {
    const progress = progressOf([1, 2, 3].flatMap((step) => [0, 1].map((rank) => ({ rank, step, step_seconds: step / 10 }))))
    const again = new Progress()
    again.restore(JSON.parse(JSON.stringify(progress.snapshot())))
    expect(rankRows(again.ranks)).toEqual(rankRows(progress.ranks))
    const old = new Progress()
    old.restore({ ranks: [[0, { lastSeq: 1, steps: 1, lastStep: 1, lastAt: 5, pid: 1, localRank: 0, received: [[1, [[1, 1]]]] }]] })
    expect(rankRows(old.ranks)).toMatchObject([{ rank: 0, lastStep: 1, meanStepSeconds: null }])
  })
})
