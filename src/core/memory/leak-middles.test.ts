import { describe, expect, it } from 'vitest'
import type { BlockWindow } from './ladder.ts'
import { judgeMiddles, LEAST_MIDDLES } from './leak-middles.ts'

const range = (n: number, value: (i: number) => number) => Array.from({ length: n }, (_, i) => value(i))
const wiggle = (i: number) => 0.01 * Math.sin(i * 12.9898)

/** A server whose memory dips deeply and unevenly below its usual level, block by block. */
function serving(values: readonly number[], dip: (i: number) => number = (i) => 0.1 + 0.1 * Math.abs(Math.sin(i * 7.3))): BlockWindow {
  return {
    position: values.map((_, i) => i + 0.5),
    floor: values.map((value, i) => value - dip(i)),
    peak: values.map((value) => value + 0.03),
    middle: values,
  }
}

describe('leak verdict on medians', () => {
  it('finds a climb under deep dips, and says how steep it is and since when', () => {
    const leak = judgeMiddles(serving(range(40, (i) => 0.4 + (i < 10 ? 0 : 0.012 * (i - 10)) + wiggle(i))))
    expect(leak?.kind).toBe('middles')
    expect(leak?.slope).toBeCloseTo(0.012, 2)
    expect(leak?.from).toBeLessThan(14)
    expect(leak?.to).toBeGreaterThan(38)
    expect(leak?.rise).toBeGreaterThan(0.25)
  })

  const refused: Readonly<Record<string, readonly number[]>> = {
    'the same dips without a climb': range(40, (i) => 0.4 + wiggle(i)),
    'a plateau after a rise': range(40, (i) => 0.4 + 0.02 * Math.min(i, 15) + wiggle(i)),
    'a rise that settles': range(40, (i) => 0.4 + 0.35 * (1 - Math.exp(-i / 7)) + wiggle(i)),
    'a rise that has slowed down': range(40, (i) => 0.35 + (i < 20 ? 0.016 * i : 0.32 + 0.007 * (i - 20)) + wiggle(i) / 5),
    'a climb that is mostly one step': range(40, (i) => 0.35 + 0.006 * i + (i < 20 ? 0 : 0.3) + wiggle(i) / 5),
    'a climb that is small against the noise': range(40, (i) => 0.4 + 0.006 * i + 20 * wiggle(i)),
    'a single step': range(40, (i) => (i < 20 ? 0.4 : 0.75) + wiggle(i)),
    'two steps': range(40, (i) => 0.4 + 0.2 * Math.floor(i / 14) + wiggle(i)),
    'a climb that is small against the room': range(40, (i) => 0.3 + 0.002 * i + wiggle(i)),
    'a climb after a fall as large': [...range(20, (i) => 0.8 - 0.02 * i), ...range(20, (i) => 0.42 + 0.018 * i)],
    'a fall': range(40, (i) => 0.8 - 0.01 * i + wiggle(i)),
    'a climb of too few blocks': range(LEAST_MIDDLES - 1, (i) => 0.3 + 0.05 * i),
  }
  for (const [what, values] of Object.entries(refused)) it(`refuses ${what}`, () => expect(judgeMiddles(serving(values))).toBe(null))

  it('leaves a series that does not dip to the floors', () => {
    const values = range(40, (i) => 0.4 + 0.012 * i + wiggle(i))
    expect(judgeMiddles(serving(values))).not.toBe(null)
    expect(judgeMiddles(serving(values, () => 0.01))).toBe(null)
  })

  it('wants the upper envelope to rise too', () => {
    const window = serving(range(40, (i) => 0.4 + 0.012 * i + wiggle(i)))
    expect(judgeMiddles({ ...window, peak: window.peak.map(() => 0.95) })).toBe(null)
  })
})
