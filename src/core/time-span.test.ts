import { describe, expect, it } from 'vitest'
import { timeText } from './time-span.ts'

const T = Date.UTC(2026, 2, 1, 2, 10, 5)

describe('times of a report', () => {
  it('say a day and a zone once', () => {
    expect(timeText(T, null, 'utc')).toBe('2026-03-01 02:10:05 UTC')
    expect(timeText(T, T + 60_000, 'utc')).toBe('2026-03-01 02:10:05 – 02:11:05 UTC')
    expect(timeText(T, T + 86_400_000, 'utc')).toBe('2026-03-01 02:10:05 – 2026-03-02 02:10:05 UTC')
  })

  it('in the zone of the reader say how far it is ahead of UTC', () => {
    expect(timeText(T, T + 1000, 'local')).toMatch(/^2026-0[23]-\d\d \d\d:\d\d:\d\d – (2026-\d\d-\d\d )?\d\d:\d\d:\d\d [+-]\d\d:\d\d$/)
  })

  it('are unknown beyond the last date there is', () => {
    expect(timeText(Number.NaN, T, 'utc')).toBe('unknown – 2026-03-01 02:10:05 UTC')
    expect(timeText(9e15, null, 'utc')).toBe('unknown')
    expect(timeText(9e15, 9e15, 'local')).toBe('unknown – unknown')
  })
})
