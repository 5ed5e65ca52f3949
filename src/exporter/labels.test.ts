import { describe, expect, it } from 'vitest'
import { Labels, labelValue } from './labels.ts'
import { numberText } from './render.ts'

describe('labels', () => {
  it.each([
    ['plain', 'plain'],
    ['back\\slash', 'back\\\\slash'],
    ['quo"te', 'quo\\"te'],
    ['new\nline', 'new\\nline'],
    ['bell\u0007 tab\t del\u007f', 'bell\uFFFD tab\uFFFD del\uFFFD'],
    ['half \ud83d of a face', 'half \uFFFD of a face'],
    ['whole 😀 face', 'whole 😀 face'],
  ])('%j is written %j', (text, written) => expect(labelValue(text)).toBe(written))

  it('are no longer than 128 characters before they are escaped', () => {
    expect(labelValue('x'.repeat(500))).toBe('x'.repeat(128))
    expect(labelValue('"'.repeat(500))).toBe('\\"'.repeat(128))
  })

  it('leave out what is null and keep what is empty', () => {
    expect(Labels.of({ a: null, b: '', c: 3 }).text).toBe('b="",c="3"')
  })
})

describe('numbers', () => {
  it.each([
    [0, '0'],
    [-0, '0'],
    [0.1, '0.1'],
    [1e-7, '1e-7'],
    [2 ** 53, '9007199254740992'],
    [1e300, '1e+300'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
  ])('%d is written %s', (value, text) => expect(numberText(value)).toBe(text))
})
