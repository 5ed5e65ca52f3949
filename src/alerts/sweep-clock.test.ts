import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SweepClock } from './sweep-clock.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setImmediate', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Lets time pass, with a tick every `everyMs`. */
function ticks(clock: SweepClock, count: number, everyMs: number): void {
  for (let i = 0; i < count; i++) {
    vi.advanceTimersByTime(everyMs)
    clock.noteTick()
  }
  vi.advanceTimersByTime(1)
}

describe('SweepClock', () => {
  it('sweeps every second without samples', () => {
    const sweep = vi.fn()
    const clock = new SweepClock(1000, sweep)
    vi.advanceTimersByTime(10_500)
    expect(sweep).toHaveBeenCalledTimes(10)
    clock.close()
    vi.advanceTimersByTime(10_000)
    expect(sweep).toHaveBeenCalledTimes(10)
  })

  it.each([100, 250, 1000])('sweeps once a second with samples every %d ms, and sets no timer of its own for it', (everyMs) => {
    const sweep = vi.fn()
    const clock = new SweepClock(1000, sweep)
    ticks(clock, 20_000 / everyMs, everyMs)
    expect(sweep.mock.calls.length).toBeGreaterThanOrEqual(19)
    expect(sweep.mock.calls.length).toBeLessThanOrEqual(23)
    clock.close()
  })

  it('keeps its own time beside samples that come seldom', () => {
    const sweep = vi.fn()
    const clock = new SweepClock(1000, sweep)
    ticks(clock, 3, 10_000)
    expect(sweep.mock.calls.length).toBeGreaterThanOrEqual(30)
    clock.close()
  })

  it('takes over within five seconds when samples stop, and at once when it learns of a problem', () => {
    const sweep = vi.fn()
    const clock = new SweepClock(1000, sweep)
    ticks(clock, 10, 1000)
    sweep.mockClear()
    vi.advanceTimersByTime(20_000)
    expect(sweep.mock.calls.length).toBeGreaterThanOrEqual(15)
    ticks(clock, 10, 1000)
    clock.hurry()
    sweep.mockClear()
    vi.advanceTimersByTime(5000)
    expect(sweep).toHaveBeenCalledTimes(5)
    clock.close()
  })
})
