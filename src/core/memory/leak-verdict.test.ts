import { describe, expect, it } from 'vitest'
import type { BlockWindow } from './ladder.ts'
import { judgeBlocks, judgeLows } from './leak-verdict.ts'

const LONG_BEFORE = -1000

function windowOf(values: readonly number[], peak: (value: number) => number = (value) => value): BlockWindow {
  return { position: values.map((_, i) => i), floor: values, peak: values.map(peak), middle: values }
}

const range = (n: number, value: (i: number) => number) => Array.from({ length: n }, (_, i) => value(i))
const wiggle = (i: number) => 0.001 * Math.sin(i * 12.9898)

describe('leak verdict on blocks', () => {
  it('finds an even climb and says how steep it is and where it began', () => {
    const leak = judgeBlocks(windowOf(range(40, (i) => 0.5 + (i < 10 ? 0 : (i - 10) * 0.006) + wiggle(i))), LONG_BEFORE)
    expect(leak?.slope).toBeCloseTo(0.006, 3)
    expect(leak?.from).toBeGreaterThanOrEqual(8)
    expect(leak?.from).toBeLessThanOrEqual(13)
    expect(leak?.rise).toBeGreaterThan(0.15)
    expect(leak?.room).toBeCloseTo(0.5 - 0.174, 1)
  })

  it('finds a staircase of many steps', () => {
    expect(judgeBlocks(windowOf(range(48, (i) => 0.5 + 0.025 * Math.floor(i / 4) + wiggle(i))), LONG_BEFORE)).not.toBe(null)
  })

  const refused: Readonly<Record<string, readonly number[]>> = {
    'a constant series': range(48, () => 0.5),
    'too little history': range(8, (i) => 0.3 + 0.05 * i),
    'a single step up': range(48, (i) => (i < 20 ? 0.3 : 0.7) + wiggle(i)),
    'three steps up': range(48, (i) => 0.3 + 0.12 * Math.floor(i / 16) + wiggle(i)),
    'a rise that settles': range(48, (i) => 0.3 + 0.4 * (1 - Math.exp(-i / 8))),
    'five steps up': range(48, (i) => 0.3 + 0.08 * Math.floor((i + 3) / 9) + wiggle(i) / 10),
    'a climb that gave half of it back on the way': range(48, (i) => 0.3 + 0.008 * (i < 24 ? i : i - 14)),
    'a wave': range(48, (i) => 0.5 + 0.2 * Math.sin(i / 6)),
    'a rise that is small against the room': range(48, (i) => 0.3 + 0.001 * i),
    'a fall': range(48, (i) => 0.9 - 0.01 * i),
  }
  for (const [what, values] of Object.entries(refused))
    it(`refuses ${what}`, () => expect(judgeBlocks(windowOf(values), LONG_BEFORE)).toBe(null))

  it('wants the upper envelope to rise too', () => {
    const values = range(40, (i) => 0.3 + 0.008 * i)
    expect(judgeBlocks(windowOf(values), LONG_BEFORE)).not.toBe(null)
    expect(
      judgeBlocks(
        windowOf(values, () => 0.7),
        LONG_BEFORE,
      ),
    ).toBe(null)
  })

  it('wants more of a series that has only just begun', () => {
    const values = range(30, (i) => 0.3 + 0.006 * i)
    expect(judgeBlocks(windowOf(values), LONG_BEFORE)).not.toBe(null)
    expect(judgeBlocks(windowOf(values), 0)).toBe(null)
  })
})

describe('leak verdict on lows', () => {
  const turns = (n: number, value: (i: number) => number, offset = 0) =>
    range(n, value).map((one, i) => ({ position: offset + 10 * i, value: one }))

  it('finds lows that climb evenly under climbing highs', () => {
    const leak = judgeLows(
      turns(5, (i) => 0.5 + 0.03 * i),
      turns(4, (i) => 0.6 + 0.03 * i, 8),
    )
    expect(leak?.slope).toBeCloseTo(0.003)
    expect(leak?.kind).toBe('lows')
  })

  it('refuses lows that stay, climb unevenly, or climb under highs that do not', () => {
    const highs = turns(4, (i) => 0.6 + 0.03 * i, 8)
    expect(
      judgeLows(
        turns(5, () => 0.5),
        highs,
      ),
    ).toBe(null)
    expect(
      judgeLows(
        turns(5, (i) => 0.5 + ([0, 0.1, 0.101, 0.102, 0.103][i] ?? 0)),
        turns(4, (i) => 0.6 + ([0, 0.1, 0.1001, 0.1002][i] ?? 0), 8),
      ),
    ).toBe(null)
    expect(
      judgeLows(
        turns(5, (i) => 0.5 + 0.03 * i),
        turns(4, () => 0.7, 8),
      ),
    ).toBe(null)
    expect(
      judgeLows(
        turns(3, (i) => 0.5 + 0.03 * i),
        highs,
      ),
    ).toBe(null)
  })
})
