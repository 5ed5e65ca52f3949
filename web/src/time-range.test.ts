import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { setQuery } from './location.ts'
import { boundsOf, chooseRange, currentRange, parseRange, RANGES, type TimeRange, zoomOut, zoomTo } from './time-range.ts'

describe('parseRange', () => {
  it('takes a name, two moments, or the last five minutes', () => {
    expect(parseRange({ range: '24h' })).toMatchObject({ kind: 'last', ms: 86_400_000 })
    expect(parseRange({ range: '1y' })).toMatchObject({ kind: 'last', ms: 365 * 86_400_000 })
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

describe('zoom', () => {
  beforeEach(() => {
    vi.stubGlobal('location', { hash: '' })
    vi.stubGlobal('history', { replaceState: () => undefined })
    setQuery({ range: null, from: null, to: null })
  })
  afterEach(() => vi.unstubAllGlobals())

  it('goes back to what was shown before, however often it was zoomed', () => {
    chooseRange(RANGES[2] as TimeRange)
    zoomTo(1000.4, 9000)
    expect(currentRange()).toEqual({ kind: 'fixed', from: 1000, to: 9000 })
    zoomTo(2000, 3000)
    zoomOut()
    expect(currentRange()).toMatchObject({ name: '24h' })
  })

  it('goes back to two moments that were chosen, and from those to the present', () => {
    chooseRange({ kind: 'fixed', from: 10, to: 20 })
    zoomTo(12, 14)
    zoomOut()
    expect(currentRange()).toEqual({ kind: 'fixed', from: 10, to: 20 })
    zoomOut()
    expect(currentRange()).toMatchObject({ name: '5m' })
  })
})
