import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cut, glyphsOf, padEnd, padStart, textWidth, wrap } from './text-width.ts'

describe('text width', () => {
  it.each([
    ['abc', 3],
    ['日本', 4],
    ['한글', 4],
    ['ﾊﾛ', 2],
    ['e\u0301', 1],
    ['👍', 2],
    ['👍🏽', 2],
    ['👩‍👧', 4],
    ['🇩🇪', 2],
    ['⣿░█─', 4],
    ['a\u200bb', 2],
    ['\u0000', 1],
    ['\ud800', 1],
  ])('of %j is %d', (text, width) => {
    expect(textWidth(text)).toBe(width)
  })

  it('lets no control character through and limits marks on a letter', () => {
    const text = glyphsOf(`\u001b[31m\u009b${`z${'\u0300'.repeat(50)}`}`)
      .map((glyph) => glyph.text)
      .join('')
    expect(text).toBe('·[31m·z\u0300\u0300')
  })

  it('never takes more room than it was given, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.integer({ min: 0, max: 40 }), (text, width) => {
        expect(textWidth(cut(text, width))).toBeLessThanOrEqual(width)
        expect(textWidth(padEnd(text, width))).toBe(width)
        expect(textWidth(padStart(text, width))).toBe(width)
      }),
    )
  })

  it('breaks any text into lines that fit, and loses nothing of plain text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), fc.integer({ min: 2, max: 30 }), (text, width) => {
        for (const line of wrap(text, width)) expect(textWidth(line)).toBeLessThanOrEqual(width)
      }),
    )
    expect(wrap('one two three', 7)).toEqual(['one two', 'three'])
    expect(wrap('abcdefghij', 4).join('')).toBe('abcdefghij')
  })
})
