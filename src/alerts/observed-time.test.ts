import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventTime, ObservedTime } from './observed-time.ts'

describe('observed time', () => {
  it('counts what passes, a jump ahead for a minute, and a jump back for nothing', () => {
    const time = new ObservedTime()
    const steps = [1000, 1500, 1400, 1600, 90_000_000, 90_000_500, 100, 600]
    expect(steps.map((at) => time.advance(at))).toEqual([0, 500, 500, 600, 60_600, 61_100, 61_100, 61_600])
  })

  it('never goes back, and goes on after being saved', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 10_000_000 })), (readings) => {
        let time = new ObservedTime()
        let last = 0
        for (const at of readings) {
          const ms = time.advance(at)
          expect(ms).toBeGreaterThanOrEqual(last)
          expect(ms - last).toBeLessThanOrEqual(60_000)
          last = ms
          const saved = time.snapshot()
          time = new ObservedTime()
          time.restore(JSON.parse(JSON.stringify(saved)) as typeof saved)
        }
      }),
    )
  })

  it('lets the time of events go on when none comes', () => {
    const time = new EventTime()
    expect(time.now(5000, 0)).toBe(5000)
    time.note(100, 20)
    expect(time.now(9000, 50)).toBe(130)
  })

  it('lets the time of events stand still while a recording is paused', () => {
    const time = new EventTime()
    time.note(100, 20)
    time.stand(true, 30)
    expect(time.now(9000, 500)).toBe(100)
    time.stand(false, 600)
    expect(time.now(9000, 610)).toBe(110)
  })
})
