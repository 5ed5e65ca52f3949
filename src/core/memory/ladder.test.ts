import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BLOCKS_PER_LEVEL, Ladder } from './ladder.ts'

function filled(samples: number, value: (i: number) => number = (i) => i / samples, step = 0.1): Ladder {
  const ladder = new Ladder(0.5, 3600)
  for (let i = 0; i < samples; i++) ladder.push(i * step, value(i))
  return ladder
}

describe('ladder', () => {
  it('makes each level of three blocks of the one below', () => {
    const ladder = filled(200)
    expect(ladder.levels).toBe(9)
    expect(ladder.count(0)).toBe(39)
    expect(ladder.count(1)).toBe(13)
    expect(ladder.count(2)).toBe(4)
    expect(ladder.blockLength(2)).toBe(4.5)
  })

  it('keeps floor and peak, and forgives one stray low reading', () => {
    const ladder = filled(6, (i) => [0.5, 0.01, 0.51, 0.52, 0.9, 0.5][i] ?? 0)
    const window = ladder.window(0)
    expect(window.floor).toEqual([0.5])
    expect(window.peak).toEqual([0.9])
    expect(window.position).toEqual([0.25])
  })

  it('takes a peak that is higher than the value it comes with', () => {
    const ladder = new Ladder(1, 10)
    ladder.push(0, 0.2, 0.7)
    ladder.push(0.5, 0.3)
    expect(ladder.push(1, 0.2)).toBe(1)
    expect(ladder.window(0).peak).toEqual([0.7])
  })

  it('forgets the oldest blocks and leaves out those that held nothing', () => {
    const ladder = filled(1000)
    expect(ladder.count(0)).toBe(BLOCKS_PER_LEVEL)
    ladder.push(1e6, 0.5)
    ladder.push(1e6 + 1, 0.5)
    const { position } = ladder.window(0)
    expect(position.at(-1)).toBeCloseTo(1e6 + 0.25)
    expect(position.at(-2)).toBeLessThan(101)
  })

  it('bounds what a crowded block keeps, and still knows its extremes', () => {
    const ladder = new Ladder(1000, 1000)
    for (let i = 0; i < 5000; i++) ladder.push(i / 10, i === 3000 ? 0.99 : i === 3100 || i === 3200 ? 0.1 : 0.5)
    ladder.push(1001, 0.5)
    expect(ladder.window(0).peak).toEqual([0.99])
    expect(ladder.window(0).floor[0]).toBeLessThan(0.5)
    expect(JSON.stringify(ladder.snapshot()).length).toBeLessThan(2000)
  })

  it('glances at the last, the lowest and the highest', () => {
    const ladder = filled(100, (i) => (i < 50 ? 0.2 : 0.6))
    expect(ladder.glance(0, 6)).toEqual({ last: 0.6, lowest: 0.2, peak: 0.6, lowestMiddle: 0.2, middle: 0.6 })
  })

  it('goes on after a snapshot as if there had been none', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ min: 0, max: 3, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })), { maxLength: 300 }),
        fc.nat(300),
        (steps, cut) => {
          const whole = new Ladder(0.5, 100)
          let halved = new Ladder(0.5, 100)
          let position = 0
          steps.forEach(([gap, value], i) => {
            position += gap
            if (i === cut % steps.length) halved = Ladder.restore(JSON.parse(JSON.stringify(halved.snapshot())), 100)
            const peak = value + (i % 3) / 10
            expect(halved.push(position, value, peak)).toBe(whole.push(position, value, peak))
          })
          for (let level = 0; level < whole.levels; level++) expect(halved.window(level)).toEqual(whole.window(level))
        },
      ),
    )
  })
})
