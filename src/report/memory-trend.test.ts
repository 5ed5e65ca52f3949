import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BoundedSeries } from './bounded-series.ts'
import { MemoryTrend } from './memory-trend.ts'

describe('a memory trend', () => {
  it('finds the slope of a line, wherever in time it lies', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1e9, max: 1e9, noNaN: true }),
        fc.integer({ min: 0, max: 2e12 }),
        fc.integer({ min: 3, max: 200 }),
        (slope, start, count) => {
          const trend = new MemoryTrend()
          for (let i = 0; i < count; i++) trend.push(start + i * 100, 5e10 + slope * i * 0.1)
          expect(Math.abs((trend.bytesPerSecond ?? Number.NaN) - slope)).toBeLessThan(1 + Math.abs(slope) * 1e-6)
        },
      ),
    )
  })

  it('knows percentiles to a tenth of a percent', () => {
    const trend = new MemoryTrend()
    for (let i = 1; i <= 1000; i++) trend.push(i, i, 1000)
    expect(trend.percentiles()).toEqual({ p5: 5, p25: 25, p50: 50, p75: 75, p95: 95, p99: 99 })
  })

  it('says nothing of nothing', () => {
    const trend = new MemoryTrend()
    expect([trend.bytesPerSecond, trend.growthBytes, trend.percentiles()]).toEqual([null, null, null])
    trend.push(5, 7)
    expect([trend.bytesPerSecond, trend.percentiles()]).toEqual([null, null])
  })
})

describe('a bounded series', () => {
  it('keeps its extremes and stays small, however long it gets', () => {
    for (const spike of [0, 1, 54_321, 54_322, 60_000, 99_999]) {
      const series = new BoundedSeries()
      for (let i = 0; i < 100_000; i++) series.push(i, i === spike ? 1e6 : i === spike + 1 ? -1e6 : i % 10)
      const { at, min, max, mean } = series.columns()
      expect(at.length).toBeLessThanOrEqual(1200)
      expect(at.length).toBeGreaterThan(500)
      expect(at).toEqual(at.toSorted((a, b) => a - b))
      expect(Math.max(...max.map((value) => value ?? 0))).toBe(1e6)
      expect(Math.min(...min.map((value) => value ?? 0))).toBe(spike === 99_999 ? 0 : -1e6)
      expect(mean[10]).toBeCloseTo(4.5, 0)
    }
  })

  it('leaves a gap where nothing was read', () => {
    const series = new BoundedSeries()
    series.push(1, 5)
    series.push(2, null)
    expect(series.columns()).toEqual({ at: [1, 2], mean: [5, null], min: [5, null], max: [5, null] })
  })
})
