import { describe, expect, it } from 'vitest'
import type { GpuSample } from '../../../../src/core/model.ts'
import { stepWith } from '../training/step.fixture.ts'
import { allocatorsOn, isFresh, judge, ledgerNow, reserveOf } from './allocators.ts'

const run = { id: 'r', name: 'r', gpus: ['0'], pid: 7, endedAt: null }
const gpus = [
  { id: 'GPU-a', label: '0', index: 0, usedBytes: 60, pids: [7, 8] },
  { id: 'GPU-b', label: '1', index: 1, usedBytes: 0, pids: [] },
]
const step = stepWith({
  at: 1000,
  memoryAllocatedBytes: 20,
  memoryReservedBytes: 40,
  memoryActiveBytes: 22,
  memoryInactiveSplitBytes: 6,
})
const sample = {
  memoryTotalBytes: 100,
  memoryUsedBytes: 60,
  memoryReservedBytes: 5,
  processes: [
    { pid: 8, memoryUsedBytes: 15 },
    { pid: 7, memoryUsedBytes: 45 },
  ],
} as unknown as GpuSample

describe('allocatorsOn', () => {
  it('takes the runs of this GPU that report their memory', () => {
    const runs = new Map([['r', run]])
    expect(allocatorsOn('GPU-a', [step, stepWith({ run: 'r' })], runs, gpus)).toEqual([{ step, run, isGuess: false }])
    expect(allocatorsOn('GPU-b', [step], runs, gpus)).toEqual([])
  })
})

describe('ledgerNow', () => {
  const named = (allocators: Parameters<typeof ledgerNow>[2], now = 1000) =>
    Object.fromEntries((ledgerNow(sample, null, allocators, now)?.entries ?? []).map(({ name, bytes }) => [name, bytes]))

  it('adds up to the total, with the run in its own process', () => {
    const entries = named([{ step, run, isGuess: false }])
    expect(entries).toEqual({
      torch_allocated: 20,
      torch_pending_free: 2,
      torch_inactive_split: 6,
      torch_releasable_cache: 12,
      non_torch: 5,
      other_processes: 15,
      driver_reserve: 5,
      free: 35,
    })
    expect(Object.values(entries).reduce((sum, bytes) => sum + bytes, 0)).toBe(100)
  })

  it('takes a run without a known process to be in the largest one', () => {
    expect(named([{ step, run: null, isGuess: true }]).other_processes).toBe(15)
  })

  it('does not count what an ended or silent run said', () => {
    expect(named([{ step, run: { ...run, endedAt: 900 }, isGuess: false }]).torch_allocated).toBeUndefined()
    expect(named([{ step, run, isGuess: false }], 100_000).torch_allocated).toBeUndefined()
  })
})

describe('isFresh', () => {
  it('gives slow steps more time', () => {
    expect(isFresh(stepWith({ at: 0, stepSeconds: 60 }), 600_000)).toBe(true)
    expect(isFresh(stepWith({ at: 0, stepSeconds: 0.1 }), 600_000)).toBe(false)
  })
})

describe('reserveOf', () => {
  it('divides the reserve without remainder; cache is not fragmentation', () => {
    const reserve = reserveOf(step)
    expect(reserve?.parts.map(({ name, bytes }) => [name, bytes])).toEqual([
      ['torch_allocated', 20],
      ['torch_pending_free', 2],
      ['torch_inactive_split', 6],
      ['torch_releasable_cache', 12],
    ])
    expect(reserve?.fragmentedRatio).toBeCloseTo(0.15)
  })

  it('does not take silence for health', () => {
    expect(reserveOf(stepWith({ memoryReservedBytes: 40 }))?.fragmentedRatio).toBeNull()
    expect(reserveOf(stepWith({ memoryReservedBytes: null }))).toBeNull()
  })
})

describe('judge', () => {
  it('has words for every ratio', () => {
    expect([null, 0, 0.05, 0.15, 0.4].map((ratio) => judge(ratio).tone)).toEqual(['muted', 'good', 'plain', 'warning', 'critical'])
  })
})
