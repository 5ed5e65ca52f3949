import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AgentState } from '../core/kinds.ts'
import { MemorySessions } from './memory-sessions.ts'
import { SamplingPace } from './sampling-pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const REQUEST = { devices: null, intervalMs: 100, oomThresholdPercent: 85, leakThresholdMegabytes: 100 }
const nothing = () => []

function sessionsOf() {
  let intervalMs = 1000
  const set = (ms: number) => {
    intervalMs = ms
  }
  const state = { gpus: nothing, processes: nothing, findings: nothing, now: () => Date.now() } as unknown as AgentState
  const sessions = new MemorySessions({ state, pace: new SamplingPace({ ownMs: 1000, set }), runs: nothing })
  return { sessions, intervalMs: () => intervalMs }
}

describe('memory sessions', () => {
  it('make the agent read as often as they want, and end with who asked', () => {
    const { sessions, intervalMs } = sessionsOf()
    const id = sessions.open(REQUEST) ?? ''
    expect(intervalMs()).toBe(100)
    vi.advanceTimersByTime(14_000)
    expect(sessions.find(id)?.report(0)).toMatchObject({ devices: {}, oom: [], leaks: [] })
    vi.advanceTimersByTime(14_000)
    expect(intervalMs()).toBe(100)
    vi.advanceTimersByTime(2000)
    expect(intervalMs()).toBe(1000)
    expect(sessions.find(id)).toBeNull()
  })

  it('leave the pace alone where they want none, and give it back when they are ended', () => {
    const { sessions, intervalMs } = sessionsOf()
    sessions.open({ ...REQUEST, intervalMs: null })
    expect(intervalMs()).toBe(1000)
    const id = sessions.open(REQUEST) ?? ''
    expect(intervalMs()).toBe(100)
    expect(sessions.end(id)).toBe(true)
    expect(intervalMs()).toBe(1000)
    expect(sessions.end(id)).toBe(false)
  })

  it('are eight at most', () => {
    const { sessions } = sessionsOf()
    for (let count = 0; count < 8; count++) expect(sessions.open(REQUEST)).not.toBeNull()
    expect(sessions.open(REQUEST)).toBeNull()
    vi.advanceTimersByTime(16_000)
    expect(sessions.open(REQUEST)).not.toBeNull()
  })
})
