import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePlace, placeHash } from './place.ts'

describe('place', () => {
  it('is the overview without a hash', () => {
    expect(parsePlace('')).toEqual({ parts: [], query: {} })
    expect(parsePlace('#/')).toEqual({ parts: [], query: {} })
  })

  it('survives a link that was cut in the middle of an escape', () => {
    expect(parsePlace('#/training/%E4%B')).toEqual({ parts: ['training', '%E4%B'], query: {} })
  })

  it('comes back from its own address, whatever the names are', () => {
    const word = fc.string({ minLength: 1, maxLength: 12, unit: 'binary' }).filter((text) => !/[\ud800-\udfff]/.test(text))
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 3 }),
        fc.dictionary(
          word.filter((name) => name !== '__proto__'),
          word,
        ),
        (parts, query) => {
          const back = parsePlace(placeHash(parts, query))
          expect(back.parts).toEqual(parts)
          expect({ ...back.query }).toEqual({ ...query })
        },
      ),
    )
  })
})
