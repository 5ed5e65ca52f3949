import { describe, expect, it } from 'vitest'
import { RecordRatio, scoreOf, scoreSeries } from './record-ratio.ts'

const noise = (i: number) => Math.sin(i * 12.9898) * Math.sin(i * 78.233)

describe('record ratio', () => {
  it('states a jump that is four times as large as anything before, once', () => {
    const ratio = new RecordRatio()
    const stated: [number, number][] = []
    for (let i = 0; i < 600; i++) {
      const said = ratio.update(50 + noise(i) + (i >= 400 ? 20 : 0), i)
      if (said !== null && said >= 2) stated.push([i, said])
    }
    expect(stated[0]?.[0]).toBe(400)
    expect(stated.length).toBeLessThanOrEqual(3)
  })

  it('gets used to jumps: the second of the same size is no record', () => {
    const ratio = new RecordRatio()
    let said = Number.NEGATIVE_INFINITY
    for (let i = 0; i < 1200; i++) {
      const one = ratio.update(50 + noise(i) + (i % 300 < 40 ? 20 : 0), i)
      if (i > 700 && one !== null) said = Math.max(said, one)
    }
    expect(said).toBeLessThan(1)
  })

  it('forgets by time, not by how often one looks', () => {
    const highest = (everyMs: number, halfLifeMs: number) => {
      const ratio = new RecordRatio({ halfLifeMs })
      let said = Number.NEGATIVE_INFINITY
      for (let i = 0, at = 0; at < 3_600_000; i++, at += everyMs) {
        const one = ratio.update(50 + noise(i) + (at % 1_200_000 >= 600_000 && at % 1_200_000 < 604_000 ? 20 : 0), at)
        if (at > 1_000_000 && one !== null) said = Math.max(said, one)
      }
      return said
    }
    expect(highest(100, 0)).toBeGreaterThan(2)
    expect(highest(100, 4 * 3_600_000)).toBeLessThan(1)
  })

  it('says nothing before it has watched for long enough', () => {
    const first = (warmupMs: number) => {
      const ratio = new RecordRatio({ warmupMs })
      for (let i = 0; i < 4000; i++) {
        const said = ratio.update(50 + noise(i) + (i % 400 === 399 ? 30 : 0), i * 100)
        if (said !== null && said >= 2) return i * 100
      }
      return null
    }
    expect(first(0)).toBe(39_900)
    expect(first(60_000)).toBe(null)
  })

  it('is silent on a constant series, on one value, and passes over what is no number', () => {
    const ratio = new RecordRatio()
    for (let i = 0; i < 500; i++) expect(ratio.update(5, i)).toBe(null)
    expect(new RecordRatio().update(3)).toBe(null)
    expect(ratio.update(Number.NaN)).toBe(null)
    expect(ratio.update(Number.POSITIVE_INFINITY)).toBe(null)
  })

  it('knows the level of now and of before', () => {
    const ratio = new RecordRatio({ window: 4 })
    for (const value of [1, 1, 1, 1, 3, 3, 3, 3]) ratio.update(value)
    expect(ratio.past).toBe(1)
    expect(ratio.present).toBe(3)
  })

  it('goes on after a snapshot as if there had been none', () => {
    const whole = new RecordRatio({ seasonMs: 100 })
    let halved = new RecordRatio({ seasonMs: 100 })
    for (let i = 0; i < 2000; i++) {
      if (i % 333 === 0) {
        const state = JSON.parse(JSON.stringify(halved.snapshot()))
        halved = new RecordRatio({ seasonMs: 100 })
        halved.restore(state)
      }
      const value = noise(i) + (i > 1500 ? 9 : 0)
      expect(halved.update(value, i)).toBe(whole.update(value, i))
    }
  })
})

describe('scores of a series', () => {
  it('are between 0 and 1, one per row, highest at the change', () => {
    const points = Array.from({ length: 4000 }, (_, i) => ({
      at: i * 300_000,
      value: i === 7 ? null : 10 + noise(i) + Math.sin(i / 46) + (i >= 3000 && i < 3060 ? 12 : 0),
    }))
    const scores = scoreSeries(points)
    expect(scores.length).toBe(points.length)
    expect(Math.min(...scores)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...scores)).toBeLessThanOrEqual(1)
    const top = scores.indexOf(Math.max(...scores))
    expect(top).toBeGreaterThanOrEqual(3000)
    expect(top).toBeLessThan(3140)
    // Nothing is a record before both windows were full for a while.
    expect(scores.slice(0, 216).every((score) => score === 0)).toBe(true)
    // What comes later changes nothing.
    expect(scoreSeries(points.slice(0, 3050))).toEqual(scores.slice(0, 3050))
  })

  it('are empty for no rows', () => expect(scoreSeries([])).toEqual([]))

  it('map the record itself to a seventh', () => {
    expect(scoreOf(null)).toBe(0)
    expect(scoreOf(0)).toBeCloseTo(1 / 7)
    expect(scoreOf(99)).toBe(1)
  })
})
