import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { glob } from './intruder-policy.ts'

describe('glob', () => {
  it('knows * and ?, and nothing else', () => {
    expect(glob('/opt/*/bin/python3.?')('/opt/conda/bin/python3.9')).toBe(true)
    expect(glob('/opt/*/bin/python3.?')('/opt/conda/bin/python3.12')).toBe(false)
    expect(glob('a.b')('axb')).toBe(false)
    expect(glob('a(b)*')('a(b)c')).toBe(true)
  })

  it('matches every text with itself, whatever signs are in it', () => {
    fc.assert(fc.property(fc.string(), (text) => glob(text)(text)))
    fc.assert(
      fc.property(fc.string(), fc.string(), (head, tail) => glob(`${head.replace(/[*?]/g, '')}*`)(head.replace(/[*?]/g, '') + tail)),
    )
  })
})
