import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  formatFigure,
  formatMoment,
  formatPercent,
  formatShare,
  formatUsed,
  formatWatts,
  formatWhole,
} from './format.ts'

/** The Python SDK is held to the same table. */
const EXAMPLES = JSON.parse(readFileSync(new URL('../../fixtures/formats.json', import.meta.url), 'utf8')) as Record<
  'bytes' | 'percent' | 'duration_ms',
  readonly (readonly [number, string])[]
>
const GIB = 1024 ** 3

it.each(EXAMPLES.bytes)('%d bytes are %s', (value, words) => expect(formatBytes(value)).toBe(words))
it.each(EXAMPLES.percent)('a ratio of %d is %s', (value, words) => expect(formatPercent(value)).toBe(words))
it.each(EXAMPLES.duration_ms)('%d ms are %s', (value, words) => expect(formatDuration(value)).toBe(words))

describe('figures', () => {
  it('are N/A where nobody knows', () => {
    expect([formatBytes, formatPercent, formatFigure, formatWatts].map((format) => format(null))).toEqual(['N/A', 'N/A', 'N/A', 'N/A'])
    expect([formatUsed(null, null), formatUsed(null, 80 * GIB), formatWhole(null, 'W')]).toEqual(['N/A', 'N/A/80.0 GiB', 'N/A'])
  })

  it('of use are in the unit of the total', () => {
    expect([formatUsed(57.14 * GIB, 80 * GIB), formatUsed(0, GIB / 2), formatUsed(573.4 * GIB, 2048 * GIB), formatUsed(GIB, null)]).toEqual(
      ['57.1/80.0 GiB', '0.0/512.0 MiB', '573/2048 GiB', '1.0 GiB'],
    )
  })

  it('of a share are never nothing where there is something', () => {
    expect([formatShare(0, 9), formatShare(1, 1e6), formatShare(948, 1000), formatShare(0, 0)]).toEqual(['0%', '<0.1%', '95%', '0%'])
  })

  it('have four digits that count', () => {
    const values = [
      0,
      123_456,
      1234.6,
      2.34567,
      0.5,
      0.00012345,
      1e6 + 0.5,
      5e9,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]
    expect(values.map(formatFigure)).toEqual(['0', '123456', '1235', '2.346', '0.5', '1.23e-4', '1e6', '5e9', 'NaN', 'Inf', '-Inf'])
  })

  it('have their unit, and things their number', () => {
    expect([formatWatts(412.4), formatWatts(12_340), formatWhole(84.4, '°C')]).toEqual(['412 W', '12.3 kW', '84 °C'])
    expect([formatCount(1, 'GPU'), formatCount(0, 'GPU'), formatCount(2, 'process', 'processes')]).toEqual([
      '1 GPU',
      '0 GPUs',
      '2 processes',
    ])
  })

  it('of a time that goes on are whole seconds', () => {
    expect([formatAge(999), formatAge(3999), formatAge(-1)]).toEqual(['0 s', '3 s', '0 s'])
  })

  it('never call something nothing, and never step back', () => {
    const ms = fc.double({ min: 1e-3, max: 1e12, noNaN: true })
    fc.assert(fc.property(ms, (value) => Number.parseFloat(formatDuration(value)) > 0))
    fc.assert(fc.property(fc.double({ min: 0.5, max: 1e15, noNaN: true }), (value) => Number.parseFloat(formatBytes(value)) > 0))
    const units: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: GIB, TiB: 1024 * GIB }
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e15, noNaN: true }), (value) => {
        const [figure, unit = ''] = formatBytes(value).split(' ')
        expect(Math.abs(Number(figure) * (units[unit] ?? 0) - value)).toBeLessThanOrEqual(Math.max(0.5, 0.052 * value))
      }),
    )
  })
})

describe('formatMoment', () => {
  it('names the moment whatever the zone of this machine is', () => {
    fc.assert(
      // Zones had odd offsets with seconds before they were standardised.
      fc.property(fc.integer({ min: Date.UTC(1980, 0, 1), max: Date.UTC(2200, 0, 1) }), (at) => {
        const text = formatMoment(at, true)
        expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d\d:\d\d$/)
        expect(Date.parse(text)).toBe(at)
        expect(formatMoment(at)).toBe(text.replace(/\.\d{3}/, ''))
      }),
    )
  })

  it('shows the time of day that a clock on this machine shows', () => {
    const at = new Date(2026, 2, 1, 2, 10, 5).getTime()
    expect(formatMoment(at)).toMatch(/^2026-03-01 02:10:05 /)
  })

  it('says so when there is no such date', () => {
    expect([Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1].map((at) => formatMoment(at))).toEqual(['unknown', 'unknown', 'unknown'])
  })
})
