import { describe, expect, it } from 'vitest'
import { processWith, runWith, sampleWith } from '../model.fixture.ts'
import type { GpuSample, TrainingStep } from '../model.ts'
import { NO_FIGURES } from '../record.ts'
import { RunMap } from './run-map.ts'

const GIB = 1024 ** 3

function sample(gpu: string, usedGib: number, pids: readonly number[] = [], at = 0): GpuSample {
  const processes = pids.map((pid) => processWith(pid))
  return sampleWith(gpu, at, { memoryTotalBytes: 80 * GIB, memoryUsedBytes: usedGib * GIB, processes })
}

function step(reservedGib: number, rank = 0, at = 0): TrainingStep {
  const figures = { ...NO_FIGURES, memoryAllocatedBytes: GIB, memoryReservedBytes: reservedGib * GIB }
  return { kind: 'step', at, run: 'r', rank, step: 1, ...figures, phaseSeconds: null, custom: null }
}

describe('run map', () => {
  it('takes the GPUs that the run names, rank by rank', () => {
    const map = new RunMap()
    map.noteRun(runWith({ gpus: ['a', 'b'] }))
    expect(map.noteStep(step(10, 0))).toBe('a')
    expect(map.noteStep(step(10, 1))).toBe('b')
  })

  it('finds the GPU by its process, else by what is reserved, else takes the only one there is', () => {
    const map = new RunMap()
    map.noteSample(sample('a', 50, [1]))
    expect(map.noteStep(step(10))).toBe('a')
    map.noteSample(sample('b', 11, [2]))
    expect(map.noteStep(step(10, 1))).toBe('b')
    map.noteRun(runWith({ pid: 1 }))
    expect(map.noteStep(step(10, 2))).toBe('a')
  })

  it('finds none where nothing fits', () => {
    const map = new RunMap()
    map.noteSample(sample('a', 50))
    map.noteSample(sample('b', 70))
    expect(map.noteStep(step(10))).toBe(null)
    expect(map.capacity('r', 0)).toBe(null)
  })

  it('takes off what others hold, and covers a GPU while steps come', () => {
    const map = new RunMap()
    map.noteSample(sample('a', 31))
    map.noteStep(step(30, 0, 1000))
    expect(map.capacity('r', 0)).toBe(79 * GIB)
    expect(map.covers('a', 20_000)).toBe(true)
    expect(map.covers('a', 60_000)).toBe(false)
    expect(map.covers('b', 20_000)).toBe(false)
    map.noteRun(runWith({ endedAt: 2000 }))
    expect(map.covers('a', 2000)).toBe(false)
  })

  it('no longer accounts for a GPU on which others have taken a tenth of it since', () => {
    const map = new RunMap()
    const seen = (used: number, at: number) => {
      map.noteSample(sample('a', used))
      map.noteStep(step(30, 0, at))
    }
    for (let i = 0; i < 10; i++) seen(35, i * 1000)
    for (let i = 0; i < 2; i++) seen(50, 10_000 + i * 1000)
    expect(map.accountsFor('a', 12_000)).toBe(true)
    for (let i = 0; i < 5; i++) seen(50, 12_000 + i * 1000)
    expect(map.accountsFor('a', 17_000)).toBe(false)
    for (let i = 0; i < 5; i++) seen(36, 17_000 + i * 1000)
    expect(map.accountsFor('a', 22_000)).toBe(true)
  })

  it('knows the GPUs of a run until it ends', () => {
    const map = new RunMap()
    map.noteRun(runWith({ gpus: ['a', 'b'] }))
    map.noteStep(step(10, 0))
    map.noteStep(step(10, 1))
    expect([...map.gpusOf('r')]).toEqual(['a', 'b'])
    map.noteRun(runWith({ endedAt: 2000 }))
    expect([...map.gpusOf('r')]).toEqual([])
  })

  it('reads what an older version saved', () => {
    const map = new RunMap()
    map.noteSample(sample('a', 31))
    map.noteStep(step(30, 0, 1000))
    const { gpus, ranks, runs } = map.snapshot()
    const older = {
      gpus: gpus.map(([id, { samples, ...gpu }]) => [id, gpu]),
      ranks: ranks.map(([key, { gpu, lastAt, every, outside }]) => [key, { gpu, lastAt, every, outside }]),
      runs,
    }
    const copy = new RunMap()
    copy.restore(JSON.parse(JSON.stringify(older)))
    expect(copy.noteStep(step(30, 0, 2000))).toBe('a')
    expect(copy.covers('a', 2000)).toBe(true)
  })

  it('keeps a bounded number of runs and survives a snapshot', () => {
    const map = new RunMap(4)
    map.noteSample(sample('a', 31))
    for (let i = 0; i < 1000; i++) map.noteStep({ ...step(30), run: `run-${i}` })
    const copy = new RunMap(4)
    copy.restore(JSON.parse(JSON.stringify(map.snapshot())))
    expect(copy.snapshot()).toEqual(map.snapshot())
    expect(map.ranksOn('a').length).toBeLessThanOrEqual(32)
  })
})
