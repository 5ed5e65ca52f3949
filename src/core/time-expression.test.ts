import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTime } from './time-expression.ts'

const NOW = 1_760_000_000_000

describe('parseTime', () => {
  it('reads what people write', () => {
    const cases: readonly [string, number][] = [
      ['now', NOW],
      ['-90s', NOW - 90_000],
      ['-1.5h', NOW - 5_400_000],
      ['-250ms', NOW - 250],
      ['-2w', NOW - 1_209_600_000],
      ['1760000000000', NOW],
      ['2026-01-31', Date.UTC(2026, 0, 31)],
      ['2026-01-31T12:30', Date.UTC(2026, 0, 31, 12, 30)],
      ['2026-01-31 12:30:15.250', Date.UTC(2026, 0, 31, 12, 30, 15, 250)],
      ['2026-01-31T12:30:00 02:00', Date.UTC(2026, 0, 31, 10, 30)],
      ['2026-01-31T12:30:00-0500', Date.UTC(2026, 0, 31, 17, 30)],
      ['2026-01-31t12:30z', Date.UTC(2026, 0, 31, 12, 30)],
    ]
    for (const [text, expected] of cases) expect(parseTime(text, NOW), text).toBe(expected)
  })

  it('refuses the rest with a sentence', () => {
    for (const text of [
      '',
      '5m',
      '+5m',
      '-5',
      '-5y',
      '-m',
      'NaN',
      '1e13',
      '2026',
      '2026-02-30T99:00',
      '--5m',
      '-5m ',
      'Infinity',
      '0x10',
    ]) {
      expect(parseTime(text, NOW), text).toBeTypeOf('string')
    }
  })

  it('reads back every ISO time, and never gives a number that is none', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('2000-01-01T00:00:00Z'), max: new Date('2100-01-01T00:00:00Z'), noInvalidDate: true }),
        (date) => {
          expect(parseTime(date.toISOString(), NOW)).toBe(date.getTime())
          expect(parseTime(String(date.getTime()), NOW)).toBe(date.getTime())
        },
      ),
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.stringMatching(/^-?[0-9.]{0,18}(ms|s|m|h|d|w)?$/),
          fc.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d[+-]\d{4}$/),
        ),
        (text) => {
          const value = parseTime(text, NOW)
          expect(typeof value === 'string' || Number.isFinite(value)).toBe(true)
        },
      ),
    )
  })
})
