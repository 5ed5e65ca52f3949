import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { panned, showing, zoomed } from './view-moves.ts'

const events = 1000
const view = { from: 200, to: 400 }

describe('a view of a timeline', () => {
  it('zooms around the pointer, which stays where it is', () => {
    expect(zoomed(view, 0.5, 250, events)).toEqual({ from: 225, to: 325 })
    expect(zoomed(view, 0.5, 200, events)).toEqual({ from: 200, to: 300 })
  })

  it('comes no closer than twenty events, nor farther than the file', () => {
    expect(zoomed(view, 0.001, 300, events)).toEqual({ from: 290, to: 310 })
    expect(zoomed(view, 100, 300, events)).toEqual({ from: 0, to: events })
    expect(zoomed({ from: 0, to: 3 }, 0.1, 1, 3)).toEqual({ from: 0, to: 3 })
  })

  it('stops at the ends', () => {
    expect(panned(view, -500, events)).toEqual({ from: 0, to: 200 })
    expect(panned(view, 900, events)).toEqual({ from: 800, to: events })
  })

  it('follows a moment that leaves it', () => {
    expect(showing(view, 399, events)).toBe(view)
    expect(showing(view, 700, events)).toEqual({ from: 600, to: 800 })
  })

  it('never leaves the file, whatever is done', () => {
    const number = fc.integer({ min: -2000, max: 2000 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), number, fc.double({ min: 0.01, max: 50, noNaN: true }), (all, by, factor) => {
        const after = panned(zoomed({ from: 0, to: all }, factor, all / 3, all), by, all)
        expect(after.from).toBeGreaterThanOrEqual(0)
        expect(after.to).toBeLessThanOrEqual(all + 1e-6)
        expect(after.to - after.from).toBeGreaterThan(0)
      }),
    )
  })
})
