import { describe, expect, it } from 'vitest'
import { ahead, messageAt } from './forecast-words.ts'
import type { Finding } from './model.ts'

describe('time ahead', () => {
  it('has digits only where they are worth something', () => {
    expect(ahead(12_000, 9200, 16_000)).toBe('in 12 s (9.2–16 s)')
    expect(ahead(252_000, 185_000, 400_000)).toBe('in 4 min (3–7 min)')
    expect(ahead(70_000, 50_000, 118_000)).toBe('in 1 min 10 s (50 s to 1 min 58 s)')
    expect(ahead(90_000, 70_000, Number.POSITIVE_INFINITY)).toBe('in 1 min 30 s (1 min 10 s or later)')
    expect(ahead(0, 0, 310)).toBe('within a second')
    expect(ahead(800, 0, 4000)).toBe('within a second, at the latest in 4 s')
  })
})

describe('a message that says how much time is left', () => {
  const AT = 1_760_000_000_000
  const forecast = (ms: number, earliestMs: number, latestMs: number): Finding =>
    ({
      state: 'active',
      at: AT,
      message: `GPU 0 will run out of memory ${ahead(ms, earliestMs, latestMs)}: 87% of 80.0 GiB is in use (a lot).`,
      evidence: {},
      ...{ predictedAt: AT + ms, predictedEarliestAt: AT + earliestMs, predictedLatestAt: AT + latestMs },
    }) as unknown as Finding

  it('counts down, and does not name a time that has passed', () => {
    const said = (ms: number) => messageAt(forecast(90_000, 60_000, 118_000), AT + ms).replace(/^GPU 0 will run out of memory |:.*$/g, '')
    expect([0, 500, 30_000, 85_000, 89_500, 119_000].map(said)).toEqual([
      'in 1 min 30 s (1 min to 1 min 58 s)',
      'in 1 min 30 s (1 min to 1 min 58 s)',
      'in 1 min (30 s to 1 min 28 s)',
      'in 5 s (0–33 s)',
      'within a second, at the latest in 29 s',
      'any moment',
    ])
    expect(messageAt(forecast(800, 0, 4000), AT + 2000)).toMatch(/memory within a second, at the latest in 2 s: 87% .* \(a lot\)\.$/)
    expect(messageAt(forecast(0, 0, 310), AT + 1500)).toContain('memory any moment: 87%')
  })

  it('counts down for a leak too, and leaves what is over and what counts nothing alone', () => {
    const leak = {
      ...forecast(0, 0, 0),
      predictedAt: null,
      predictedEarliestAt: null,
      predictedLatestAt: null,
      evidence: { fullAt: AT + 600_000 },
    }
    const message = `train.py leaks 1 GiB per second: 9.7 GiB more in 26 s, and nothing is freed. At this rate the GPU will be full ${ahead(600_000, 360_000, 1_080_000)}.`
    expect(messageAt({ ...leak, message }, AT + 300_000)).toMatch(/: 9.7 GiB more in 26 s, .* will be full in 5 min \(1–13 min\)\.$/)
    const over = { ...leak, message, state: 'resolved' as const }
    expect(messageAt(over, AT + 300_000)).toBe(message)
    const stall = {
      ...leak,
      since: AT - 4260,
      evidence: {},
      message: 'Run a has stalled: no step for 4.26 s after step 60, usually one every 200 ms.',
    }
    expect(messageAt(stall, AT + 90_000)).toBe('Run a has stalled: no step for 1 min 34 s after step 60, usually one every 200 ms.')
    const other = { ...leak, message: 'GPU 0 was full 3 times in 1 min (again).', evidence: {} }
    expect(messageAt(other, AT + 300_000)).toBe(other.message)
  })
})
