import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TickClock } from './clock.ts'

describe('TickClock', () => {
  it('stays on its grid whatever the reads cost', () => {
    const clock = new TickClock(100, 1000)
    expect(clock.advance(1003)).toBe(97)
    expect(clock.advance(1150)).toBe(50)
    expect(clock.tick).toBe(2)
    expect(clock.skipped).toBe(0)
  })

  it('ticks together with another clock of the same origin, whenever it was started', () => {
    const late = new TickClock(100, 3550, 1000)
    expect(late.advance(3560)).toBe(40)
    expect(late.skipped).toBe(0)
    expect(new TickClock(100, 1000, 1000).advance(3560)).toBe(40)
  })

  it('skips and counts the ticks that a slow read ran over', () => {
    const clock = new TickClock(100, 0)
    expect(clock.advance(350)).toBe(50)
    expect(clock.tick).toBe(4)
    expect(clock.skipped).toBe(3)
  })

  it('goes over to another grid of the same origin, and back', () => {
    const clock = new TickClock(1000, 0)
    expect(clock.advance(10)).toBe(990)
    expect(clock.pace(100, 250)).toBe(50)
    expect(clock.advance(303)).toBe(97)
    expect(clock.pace(1000, 420)).toBe(580)
    expect(clock.skipped).toBe(0)
  })

  it('accounts for every grid point exactly once and never asks to wait longer than an interval', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60_000 }),
        fc.array(fc.double({ min: 0, max: 5, noNaN: true }), { maxLength: 50 }),
        (interval, costs) => {
          const clock = new TickClock(interval, 0)
          let now = 0
          for (const cost of costs) {
            now += cost * interval
            const wait = clock.advance(now)
            expect(wait).toBeGreaterThanOrEqual(0)
            expect(wait).toBeLessThanOrEqual(interval + 1e-6)
            now += wait
          }
          expect(clock.tick).toBe(costs.length + clock.skipped)
        },
      ),
    )
  })
})
