import { describe, expect, it } from 'vitest'
import { type GpuFacts, placeOfRank } from './run-gpu.ts'

const GIB = 1024 ** 3
const gpu = (index: number, usedBytes: number | null, pids: readonly number[] = []): GpuFacts => ({
  id: `GPU-${index}`,
  label: String(index),
  index,
  usedBytes,
  pids,
})
const two = [gpu(0, 10 * GIB, [7]), gpu(1, 40 * GIB, [8])]

describe('placeOfRank', () => {
  it('takes what the run says, by id, label or index, rank by rank', () => {
    const run = { gpus: ['1', 'GPU-0'], pid: 7 }
    expect(placeOfRank(run, 0, null, two)).toEqual({ gpu: 'GPU-1', isGuess: false })
    expect(placeOfRank(run, 1, null, two)?.gpu).toBe('GPU-0')
    expect(placeOfRank(run, 2, null, two)?.gpu).toBe('GPU-1')
  })

  it('goes by the process where the run names no GPU', () => {
    expect(placeOfRank({ gpus: [], pid: 8 }, 0, null, two)).toEqual({ gpu: 'GPU-1', isGuess: false })
  })

  it('guesses by memory, and says so', () => {
    expect(placeOfRank(null, 0, 39 * GIB, two)).toEqual({ gpu: 'GPU-1', isGuess: true })
    expect(placeOfRank(null, 0, 25 * GIB, two)).toBeNull()
    expect(placeOfRank(null, 0, null, two)).toBeNull()
  })

  it('has no doubt with a single GPU, and none to name with none', () => {
    expect(placeOfRank(null, 3, null, [gpu(0, null)])).toEqual({ gpu: 'GPU-0', isGuess: false })
    expect(placeOfRank(null, 0, GIB, [])).toBeNull()
  })
})
