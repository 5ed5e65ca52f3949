import { describe, expect, it } from 'vitest'
import { elapsedTicks, momentText, tickLabel, timeTicks } from './time-ticks.ts'

const HOUR = 3_600_000

describe('timeTicks', () => {
  it('stands on whole steps inside the span', () => {
    const from = new Date(2026, 5, 1, 10, 2, 11).getTime()
    const ticks = timeTicks(from, from + 5 * 60_000, 6)
    expect(ticks.map((at) => tickLabel(at, 60_000, false))).toEqual(['10:03', '10:04', '10:05', '10:06', '10:07'])
  })

  it('has at most as many as there is room for, one more at the edge', () => {
    for (const span of [1000, 60_000, HOUR, 24 * HOUR, 90 * 24 * HOUR])
      expect(timeTicks(1e12, 1e12 + span, 8).length).toBeLessThanOrEqual(9)
  })

  it('says the day at midnight, and seconds where steps are shorter than a minute', () => {
    const midnight = new Date(2026, 5, 2).getTime()
    expect(tickLabel(midnight, HOUR, false)).toBe('6/2')
    expect(tickLabel(midnight + 5000, 5000, false)).toBe('00:00:05')
  })
})

describe('elapsedTicks', () => {
  it('counts from the beginning of the run, whatever the zone', () => {
    expect(elapsedTicks(0, 95_000, 4)).toEqual([0, 30_000, 60_000, 90_000])
    expect(elapsedTicks(61_000, 95_000, 2)).toEqual([90_000])
  })
})

describe('momentText', () => {
  it('says where the crosshair is on each kind of axis', () => {
    expect(momentText(12, 'step')).toBe('step 12')
    expect(momentText(42_000, 'elapsed')).toBe('after 42 s')
    expect(momentText(185_000, 'elapsed')).toBe('after 3:05 min')
    expect(momentText(2 * HOUR + 605_000, 'elapsed')).toBe('after 2:10:05 h')
  })
})
