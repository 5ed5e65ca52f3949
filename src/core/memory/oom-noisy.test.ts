import { describe, expect, it } from 'vitest'
import type { BlockWindow } from './ladder.ts'
import { excursionsOf, forecastNoisy } from './oom-noisy.ts'

const range = (value: (i: number) => number, n = 48) => Array.from({ length: n }, (_, i) => value(i))
const wiggle = (i: number) => 0.005 * Math.sin(i * 12.9898)

/** Memory that dips by up to 0.4 in each block; every eighth block has a peak. */
function serving(values: readonly number[], peak = 0): BlockWindow {
  return {
    position: values.map((_, i) => i + 0.5),
    floor: values.map((value, i) => value - 0.4 * Math.abs(Math.sin(i * 7.3))),
    peak: values.map((value, i) => value + (i % 8 === 0 ? peak : 0)),
    middle: values,
  }
}

const forecast = (window: BlockWindow, caution?: number) => forecastNoisy(window, 1, 0.003, () => excursionsOf(window, 1), caution)

describe('forecast of memory that requests take and give back', () => {
  const climb = range((i) => 0.5 + 0.01 * Math.max(0, i - 12) + wiggle(i))

  it('extends the usual level from where its climb began, and says how deep the dips are', () => {
    const found = forecast(serving(climb))
    // 0.85 at block 47, 0.01 a block.
    expect(found?.fullAt).toBeGreaterThan(58)
    expect(found?.fullAt).toBeLessThan(68)
    expect(found?.earliest).toBeLessThan(63)
    expect(found?.latest).toBeGreaterThan(63)
    expect(found?.span).toBeGreaterThan(30)
    expect(found?.dip).toBeGreaterThan(0.3)
  })

  it('expects the end sooner where memory has peaks, and leaves room for the case that none comes', () => {
    const [calm, peaks] = [forecast(serving(climb)), forecast(serving(climb, 0.1))]
    expect(peaks?.fullAt).toBeLessThan((calm?.fullAt ?? 0) - 4)
    expect(peaks?.latest).toBeGreaterThan(63)
  })

  it('counts rare peaks less than frequent ones', () => {
    const rare = serving(climb)
    const once = { ...rare, peak: rare.peak.map((value, i) => (i === 20 ? value + 0.1 : value)) }
    expect(forecast(once)?.fullAt).toBeGreaterThan(forecast(serving(climb, 0.1))?.fullAt ?? 0)
  })

  it('asks for more evidence with more caution', () => {
    const noisy = serving(range((i) => 0.5 + 0.01 * Math.max(0, i - 20) + 6 * wiggle(i)))
    expect(forecast(noisy)).not.toBe(null)
    expect(forecast(noisy, 10)).toBe(null)
  })

  const refused: Readonly<Record<string, readonly number[]>> = {
    'dips without a climb': range((i) => 0.5 + wiggle(i)),
    'a climb that settles': range((i) => 0.5 + 0.4 * (1 - Math.exp(-i / 8)) + wiggle(i)),
    'a climb that has ended': range((i) => 0.5 + 0.02 * Math.min(18, Math.max(0, i - 10)) + wiggle(i)),
    'one step': range((i) => (i < 24 ? 0.5 : 0.9) + wiggle(i)),
    'the way back from a dip': range((i) => 0.9 - (i < 12 ? 0 : 0.4 - 0.01 * (i - 12)) + wiggle(i)),
  }
  for (const [what, values] of Object.entries(refused)) it(`refuses ${what}`, () => expect(forecast(serving(values))).toBe(null))
})
