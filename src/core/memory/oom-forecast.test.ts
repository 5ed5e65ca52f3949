import { describe, expect, it } from 'vitest'
import type { BlockWindow } from './ladder.ts'
import { forecastBlocks, forecastHighs } from './oom-forecast.ts'

function windowOf(values: readonly number[], peak: (value: number, i: number) => number = (value) => value): BlockWindow {
  return { position: values.map((_, i) => i + 0.5), floor: values, peak: values.map(peak), middle: values }
}

const line = (from: number, slope: number, n = 48) => Array.from({ length: n }, (_, i) => from + slope * i)
const forecast = (window: BlockWindow, blocks = 48) => forecastBlocks(window, blocks, 1, 0.003)

describe('forecast from blocks', () => {
  it('extends the line to where it is full, and holds that in its interval', () => {
    const found = forecast(windowOf(line(0.5, 0.005)))
    expect(found?.fullAt).toBeCloseTo(100.5, 0)
    expect(found?.earliest).toBeLessThan(100)
    expect(found?.latest).toBeGreaterThan(101)
  })

  it('says nothing of an end that is far off against what was seen', () => {
    expect(forecast(windowOf(line(0.2, 0.005)))).not.toBe(null)
    expect(forecast(windowOf(line(0.2, 0.002)))).toBe(null)
  })

  it('counts the worst excursion in, but not one that filled the device without harm', () => {
    const calm = forecast(windowOf(line(0.5, 0.005)))
    const bursty = forecast(windowOf(line(0.5, 0.005), (value, i) => (i === 20 ? value + 0.1 : value)))
    const flushed = forecast(windowOf(line(0.5, 0.005), (value, i) => (i === 20 ? 0.99 : value)))
    expect(bursty?.room).toBeCloseTo((calm?.room ?? 0) - 0.1, 2)
    expect(flushed?.room).toBeCloseTo(calm?.room ?? 0, 2)
  })

  it('refuses the few stairs of a job that starts, not the many of one that leaks', () => {
    const start = Array.from({ length: 16 }, (_, i) => (i < 3 ? 0.01 : i < 10 ? 0.36 : i < 13 ? 0.56 : 0.6))
    expect(forecast(windowOf(start), 16)).toBe(null)
    const leak = Array.from({ length: 16 }, (_, i) => 0.1 + 0.1 * Math.floor(i / 2))
    expect(forecast(windowOf(leak), 16)).not.toBe(null)
  })

  it('refuses a step, a settling rise, a swing and too few blocks', () => {
    expect(forecast(windowOf(line(0.5, 0).map((value, i) => (i < 24 ? value : 0.8))))).toBe(null)
    expect(forecast(windowOf(line(0, 1).map((i) => 0.3 + 0.5 * (1 - Math.exp(-i / 10)))))).toBe(null)
    expect(forecast(windowOf([...line(0.9, -0.01, 32), ...line(0.58, 0.01, 16)]), 16)).toBe(null)
    expect(forecast(windowOf(line(0.5, 0.005, 10)))).toBe(null)
  })
})

describe('forecast from highs', () => {
  const turns = (n: number, value: (i: number) => number, offset: number) =>
    Array.from({ length: n }, (_, i) => ({ position: offset + 10 * i, value: value(i) }))

  it('extends the envelope, and refuses ripples on one large swing', () => {
    const highs = turns(8, (i) => 0.6 + 0.03 * i, 9)
    expect(
      forecastHighs(
        highs,
        turns(9, (i) => 0.5 + 0.03 * i, 0),
        81,
        0.003,
      )?.fullAt,
    ).toBeCloseTo(142, 0)
    const before = [{ position: -60, value: 0.9 }, ...highs]
    expect(forecastHighs(before, [{ position: -50, value: 0.4 }, ...turns(9, (i) => 0.5 + 0.03 * i, 0)], 81, 0.003)).toBe(null)
    expect(forecastHighs(highs.slice(0, 3), [], 40, 0.003)).toBe(null)
  })
})
