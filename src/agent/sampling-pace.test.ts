import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SamplingPace } from './sampling-pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function paceOf(ownMs: number) {
  const set: number[] = []
  return { set, pace: new SamplingPace({ ownMs, set: (intervalMs) => set.push(intervalMs) }) }
}

describe('the pace of sampling', () => {
  it('is the fastest that anybody asks for, and never slower than configured', () => {
    const { pace } = paceOf(1000)
    expect(pace.ask('a', 500, 5000)).toBe(500)
    expect(pace.ask('b', 100, 5000)).toBe(100)
    expect(pace.ask('c', 60_000, 5000)).toBe(100)
    expect(pace.ask('d', 1, 5000)).toBe(100)
    expect(pace.release('b')).toBe(100)
    expect(pace.release('d')).toBe(500)
    expect(pace.release('nobody')).toBe(500)
  })

  it('goes back by itself when the asker is silent, and stays while it asks again', () => {
    const { pace, set } = paceOf(1000)
    pace.ask('a', 100, 5000)
    vi.advanceTimersByTime(4000)
    pace.ask('a', 100, 5000)
    vi.advanceTimersByTime(4000)
    expect(set.at(-1)).toBe(100)
    vi.advanceTimersByTime(1001)
    expect(set.at(-1)).toBe(1000)
  })

  it('has a bounded number of askers', () => {
    const { pace } = paceOf(1000)
    for (let asker = 0; asker < 64; asker++) expect(pace.ask(String(asker), 100, 5000)).toBe(100)
    expect(pace.ask('one more', 100, 5000)).toBeNull()
    expect(pace.ask('3', 200, 5000)).toBe(100)
    vi.advanceTimersByTime(5001)
    expect(pace.ask('one more', 200, 5000)).toBe(200)
  })
})
