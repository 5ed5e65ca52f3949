import { describe, expect, it } from 'vitest'
import { Creep, judgeCreep, neededGain } from './creep.ts'
import { ladderFrom } from './growth.ts'

const EVERY = 57
const UNTIL = 600

/** A server that moves to another level every 12 readings, and what grows underneath: share of capacity by seconds since reading 200. */
function follow(growth: (seconds: number, level: number) => number, readings = UNTIL) {
  const creep = new Creep()
  const samples = Array.from({ length: readings }, (_, i) => {
    const level = 0.35 + 0.08 * Math.abs(Math.sin(7.3 * Math.floor(i / 12)))
    const value = level + growth(Math.max(0, i - 200) * EVERY, level)
    return [i * EVERY, Math.round(value * 40_960) / 40_960, value] as const
  })
  const ladder = ladderFrom(samples.slice(0, 8), 7200)
  samples.forEach(([position, value], i) => {
    creep.push(position, value)
    if (i >= 8) ladder.push(position, value)
  })
  const now = (readings - 1) * EVERY
  return { creep, leak: judgeCreep(creep.current, ladder, now, 1), now }
}

describe('creep of memory that is held', () => {
  it('is found under moves that are larger, with its pace and since when', () => {
    const { creep, leak, now } = follow((seconds) => 1.6e-5 * seconds)
    expect(creep.current?.slope).toBeCloseTo(1.6e-5, 6)
    expect(creep.current?.from).toBeLessThan(210 * EVERY)
    expect(leak?.kind).toBe('creep')
    expect(leak?.rise).toBeCloseTo(1.6e-5 * (now - 200 * EVERY), 1)
  })

  it('is none where nothing grows', () => expect(follow(() => 0).creep.current).toBe(null))

  it('is no leak while it is small against what is free, and needs less once it lasts', () => {
    expect(follow((seconds) => 1.6e-5 * seconds, 300).leak).toBe(null)
    expect(neededGain(5 * 3600)).toBeLessThan(neededGain(3 * 3600))
  })

  const refused: Readonly<Record<string, (seconds: number, level: number) => number>> = {
    'a cache that fills': (seconds) => 0.4 * (1 - Math.exp(-seconds / 7200)),
    'growth that has ended': (seconds) => 0.3 * Math.min(1, seconds / 14_400),
    'requests that need more, the larger the more': (seconds, level) => 8e-5 * seconds * (level - 0.2),
    'what is freed at each move': (seconds) => 2e-5 * (seconds % (12 * EVERY)),
  }
  for (const [what, growth] of Object.entries(refused)) it(`is no leak: ${what}`, () => expect(follow(growth).leak).toBe(null))

  it('says that memory rests level, only from readings since the climb began', () => {
    const { creep, now } = follow((seconds) => 0.3 * Math.min(1, seconds / 14_400))
    expect(creep.restsLevel(2e-5, 200 * EVERY)).toBe(true)
    expect(creep.restsLevel(2e-5, now - EVERY)).toBe(false)
    expect(follow((seconds) => 1.6e-5 * seconds).creep.restsLevel(1.6e-5, 200 * EVERY)).toBe(false)
  })

  it('goes on after a restart', () => {
    const { creep } = follow((seconds) => 1.6e-5 * seconds)
    const again = new Creep()
    again.restore(structuredClone(creep.snapshot()))
    expect(again.current).toEqual(creep.current)
  })
})
