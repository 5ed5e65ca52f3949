import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatMoment } from './format.ts'

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
