import { describe, expect, it } from 'vitest'
import { isInWindow, type TimeWindow } from './time-window.ts'

/** 2025-07-28 was a Monday. */
const at = (day: number, hours: number, minutes = 0) => new Date(2025, 6, 27 + day, hours, minutes).getTime()

describe('time windows', () => {
  it('hold within a day', () => {
    const window: TimeWindow = { from: '09:30', to: '17:00' }
    expect([at(1, 9, 29), at(1, 9, 30), at(1, 16, 59), at(1, 17)].map((time) => isInWindow(window, time))).toEqual([
      false,
      true,
      true,
      false,
    ])
  })

  it('go past midnight, and belong to the day they began on', () => {
    const window: TimeWindow = { days: ['fri'], from: '22:00', to: '06:00' }
    const times = [at(5, 5), at(5, 21, 59), at(5, 22), at(6, 0), at(6, 5, 59), at(6, 6), at(6, 23)]
    expect(times.map((time) => isInWindow(window, time))).toEqual([false, false, true, true, true, false, false])
  })

  it('last the whole day when they end when they begin', () => {
    const window: TimeWindow = { days: ['sun'], from: '00:00', to: '00:00' }
    expect([at(6, 23, 59), at(7, 0), at(7, 12), at(7, 23, 59), at(8, 0)].map((time) => isInWindow(window, time))).toEqual([
      false,
      true,
      true,
      true,
      false,
    ])
  })

  it('happen once between two moments', () => {
    const window: TimeWindow = { start: '2025-07-30T10:00:00Z', end: '2025-07-30T11:00:00Z' }
    const utc = (hours: number, minutes = 0) => Date.UTC(2025, 6, 30, hours, minutes)
    expect([utc(9, 59), utc(10), utc(10, 59), utc(11)].map((time) => isInWindow(window, time))).toEqual([false, true, true, false])
  })
})
