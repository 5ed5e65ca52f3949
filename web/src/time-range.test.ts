import { describe, expect, it } from 'vitest'
import { boundsOf, parseRange } from './time-range.ts'

describe('parseRange', () => {
  it('takes a name, two moments, or the last five minutes', () => {
    expect(parseRange({ range: '24h' })).toMatchObject({ kind: 'last', ms: 86_400_000 })
    expect(parseRange({ from: '1000', to: '2000', range: '1h' })).toEqual({ kind: 'fixed', from: 1000, to: 2000 })
    expect(parseRange({})).toMatchObject({ kind: 'last', name: '5m' })
  })

  it('is not misled by nonsense', () => {
    for (const query of [{ range: 'x' }, { from: '2000', to: '1000' }, { from: 'a', to: 'b' }, { from: '5' }])
      expect(parseRange(query)).toMatchObject({ name: '5m' })
  })
})

describe('boundsOf', () => {
  it('moves with the clock unless it is fixed', () => {
    expect(boundsOf({ kind: 'last', name: '5m', ms: 300 }, 1000)).toEqual({ from: 700, to: 1000 })
    expect(boundsOf({ kind: 'fixed', from: 1, to: 2 }, 1000)).toEqual({ from: 1, to: 2 })
  })
})
