import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { niceStep, valueAxis } from './scale.ts'
import { dateOf, timeTicks } from './time-axis.ts'
import { formatValue, unitNamed } from './units.ts'

const GIBIBYTE = 1024 ** 3
const labels = (axis: { ticks: readonly { label: string }[] }) => axis.ticks.map((tick) => tick.label)

describe('value axis', () => {
  it('has round ticks in the unit people use', () => {
    expect(labels(valueAxis(0, 80 * GIBIBYTE, 'bytes', 4))).toEqual(['0', '20 GiB', '40 GiB', '60 GiB', '80 GiB'])
    expect(labels(valueAxis(0, 1, 'ratio', 4))).toEqual(['0', '25%', '50%', '75%', '100%'])
    expect(labels(valueAxis(62, 88, 'celsius', 3))).toEqual(['60 °C', '70 °C', '80 °C', '90 °C'])
    expect(labels(valueAxis(0, 700, 'watts', 4))).toEqual(['0', '200 W', '400 W', '600 W', '800 W'])
    expect(labels(valueAxis(0, 0.3, 'seconds', 3))).toEqual(['0', '0.1 s', '0.2 s', '0.3 s'])
    expect(labels(valueAxis(-3, 4, { suffix: 'x' }, 3))).toEqual(['-5 x', '0', '5 x'])
  })

  it('encloses its range with a bounded number of ticks', () => {
    fc.assert(
      fc.property(fc.double({ min: -1e12, max: 1e12, noNaN: true }), fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (low, span) => {
        const axis = valueAxis(low, low + span, 'count', 5)
        expect(axis.from).toBeLessThanOrEqual(low + (Math.abs(low) + span) * 1e-6)
        expect(axis.to).toBeGreaterThanOrEqual(low + span - (Math.abs(low) + span) * 1e-6)
        expect(axis.ticks.length).toBeLessThanOrEqual(9)
      }),
    )
    expect([0.03, 0.7, 1, 1.5, 3, 7].map(niceStep)).toEqual([0.05, 1, 1, 2, 5, 10])
  })
})

describe('time axis', () => {
  const noon = Date.UTC(2026, 2, 28, 12, 3, 20)
  const texts = (spanMs: number, zone = 'UTC', from = noon) => timeTicks(from, from + spanMs, 5, zone).map((tick) => tick.label)

  it('ticks at round moments of the given clock', () => {
    expect(texts(60_000)).toEqual(['12:03:30', '12:03:45', '12:04:00', '12:04:15'])
    expect(texts(3_600_000)).toEqual(['12:15', '12:30', '12:45', '13:00'])
    expect(texts(3_600_000, 'Asia/Kathmandu')).toEqual(['18:00', '18:15', '18:30', '18:45'])
    expect(texts(86_400_000)).toEqual(['18:00', '29 Mar', '06:00', '12:00'])
    expect(texts(10 * 86_400_000)).toEqual(['30 Mar', '1 Apr', '3 Apr', '5 Apr', '7 Apr'])
  })

  it('shows true wall-clock times on the day the clocks change', () => {
    expect(texts(4 * 3_600_000, 'Europe/Berlin', Date.UTC(2026, 2, 29, 0, 0))).toEqual(['01:00', '03:00', '04:00', '05:00', '06:00'])
  })

  it('names the day', () => {
    expect(dateOf(Date.UTC(2026, 2, 1, 23, 30), 'Europe/Berlin')).toBe('2 Mar 2026')
  })
})

describe('units', () => {
  it('writes one value', () => {
    expect(formatValue(61.34 * GIBIBYTE, 'bytes')).toBe('61.3 GiB')
    expect(formatValue(0.871, 'ratio')).toBe('87%')
    expect(formatValue(84, 'celsius')).toBe('84 °C')
    expect(formatValue(0, 'bytes')).toBe('0 B')
  })

  it('knows units by name and keeps the others', () => {
    expect(unitNamed('°C')).toBe('celsius')
    expect(unitNamed('bytes')).toBe('bytes')
    expect(unitNamed('samples/s')).toEqual({ suffix: 'samples/s' })
  })
})
