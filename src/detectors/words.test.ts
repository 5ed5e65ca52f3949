import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ahead, bytes, duration } from './words.ts'

describe('duration', () => {
  it.each([
    [0, '0 s'],
    [0.04, '0.04 ms'],
    [2.613, '2.6 ms'],
    [9.96, '10 ms'],
    [41.7, '42 ms'],
    [420, '420 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [1254, '1.25 s'],
    [12_300, '12 s'],
    [240_000, '4 min'],
    [9_000_000, '2.5 h'],
  ])('%d ms is %s', (ms, words) => expect(duration(ms)).toBe(words))

  it('never calls something nothing', () => {
    fc.assert(fc.property(fc.double({ min: 1e-3, max: 1e12, noNaN: true }), (ms) => Number.parseFloat(duration(ms)) > 0))
  })
})

describe('bytes', () => {
  it.each([
    [0, '0 MiB'],
    [700, '700 B'],
    [40 * 1024, '40 KiB'],
    [2.6 * 1024 ** 2, '2.6 MiB'],
    [512 * 1024 ** 2, '512 MiB'],
    [140.3 * 1024 ** 3, '140.3 GiB'],
  ])('%d is %s', (value, words) => expect(bytes(value)).toBe(words))
})

describe('time ahead', () => {
  it('has digits only where they are worth something', () => {
    expect(ahead(12_000, 9200, 16_000)).toBe('in 12 s (9.2 s to 16 s)')
    expect(ahead(0, 0, 310)).toBe('within a second')
    expect(ahead(800, 0, 4000)).toBe('within a second, at the latest in 4 s')
  })
})
