import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson, parseObject, parseTimestamp } from './json.ts'

describe('parseTimestamp', () => {
  it('agrees with Date for every moment it can write', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), (at) => {
        expect(parseTimestamp(new Date(at).toISOString())).toBe(at)
      }),
    )
  })

  it('takes other ISO spellings and epoch numbers', () => {
    expect(parseTimestamp('2026-11-15T06:30:58.115000+00:00')).toBe(Date.UTC(2026, 10, 15, 6, 30, 58, 115))
    expect(parseTimestamp('2026-11-15T08:30:58+02:00')).toBe(Date.UTC(2026, 10, 15, 6, 30, 58))
    expect(parseTimestamp(1_763_188_258.115)).toBe(1_763_188_258_115)
    expect(parseTimestamp(1_763_188_258_115)).toBe(1_763_188_258_115)
  })

  it.each([
    '',
    'now',
    1e300,
    -1e300,
    1e16,
    Number.POSITIVE_INFINITY,
    Number.NaN,
    '+275760-01-01T00:00:00.000Z',
    '5',
    '2026-13-45T00:00:00.000Z',
    '2026-11-15T25:00:00.000Z',
    '2026-11-15T06:61:00.000Z',
    '2026-11-15T06:3x:58.115Z',
    null,
    {},
  ])('refuses %j', (value) => {
    expect(parseTimestamp(value)).toBe(null)
  })

  it('is not misled by the day it remembers', () => {
    expect(parseTimestamp('2026-11-15T00:00:00.000Z')).toBe(Date.UTC(2026, 10, 15))
    expect(parseTimestamp('2026-11-16T00:00:00.000Z')).toBe(Date.UTC(2026, 10, 16))
    expect(parseTimestamp('2026-11-15T00:00:00.000Z')).toBe(Date.UTC(2026, 10, 15))
  })
})

describe('parseJson', () => {
  it('reads the bare NaN and Infinity of Python as text, and leaves strings alone', () => {
    expect(parseJson('{"a": NaN, "b": [Infinity, -Infinity, -1], "c": "NaN, \\"-Infinity"}')).toEqual({
      a: 'NaN',
      b: ['Infinity', '-Infinity', -1],
      c: 'NaN, "-Infinity',
    })
  })

  it('never throws, whatever the text', () => {
    const pieces = fc.constantFrom('NaN', 'Infinity', '-Infinity', '{', '}', '"', '\\', ':', ',', 'a', '1', ' ')
    fc.assert(
      fc.property(
        fc.array(pieces).map((parts) => parts.join('')),
        (text) => {
          parseJson(text)
        },
      ),
    )
  })

  it('distinguishes text that is not JSON from JSON that is not an object', () => {
    expect(parseObject('{"a": ')).toBe('not_json')
    expect(parseObject('{"a": NaNo}')).toBe('not_json')
    expect(parseObject('[1]')).toBe('not_an_object')
    expect(parseObject('null')).toBe('not_an_object')
    expect(parseObject('{"a":1}')).toEqual({ a: 1 })
  })
})
