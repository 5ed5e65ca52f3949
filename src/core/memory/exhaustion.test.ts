import { describe, expect, it } from 'vitest'
import { Exhaustion } from './exhaustion.ts'
import type { Forecast } from './oom-forecast.ts'

/** Feeds value(i) once a second and gives the last judgement. */
function last(samples: number, value: (i: number) => number): Forecast | null {
  const watch = new Exhaustion()
  let found: Forecast | null = null
  for (let i = 0; i < samples; i++) {
    const judged = watch.push(i, value(i))
    if (judged !== undefined) found = judged
  }
  return found
}

const wiggle = (i: number) => 0.001 * Math.sin(i * 12.9898)

describe('exhaustion', () => {
  it('says when a line is full, with an interval around it', () => {
    const forecast = last(300, (i) => 0.4 + 0.0015 * i + wiggle(i))
    expect(forecast?.fullAt).toBeGreaterThan(380)
    expect(forecast?.fullAt).toBeLessThan(420)
    expect(forecast?.earliest).toBeLessThan(400)
    expect(forecast?.latest).toBeGreaterThan(400)
  })

  it('counts the worst burst in: memory is full when the next one does not fit', () => {
    const bursts = (i: number) => 0.4 + 0.001 * i + (i % 50 < 4 ? 0.1 : 0)
    const forecast = last(400, bursts)
    expect(forecast?.fullAt).toBeGreaterThan(470)
    expect(forecast?.fullAt).toBeLessThan(530)
  })

  it('follows the highs of a sawtooth', () => {
    const forecast = last(300, (i) => 0.3 + 0.001 * i + 0.1 * ((i % 30) / 30))
    expect(forecast?.earliest).toBeLessThan(610)
    expect(forecast?.latest).toBeGreaterThan(600)
  })

  it('is silent on a constant series, a wave, a settling rise and a step', () => {
    expect(last(400, () => 0.9)).toBe(null)
    expect(last(600, (i) => 0.5 + 0.2 * Math.sin(i / 40))).toBe(null)
    expect(last(600, (i) => 0.3 + 0.4 * (1 - Math.exp(-i / 60)))).toBe(null)
    expect(last(400, (i) => (i < 200 ? 0.3 : 0.8))).toBe(null)
  })

  it('does not promise a far end from a short rise', () => {
    const watch = new Exhaustion()
    const found: (Forecast | null | undefined)[] = []
    for (let i = 0; i < 130; i++) found.push(watch.push(i, i < 100 ? 0.2 : 0.2 + 0.001 * (i - 100)))
    expect(found.some((one) => one)).toBe(false)
  })

  it('survives a snapshot at any moment', () => {
    const whole = new Exhaustion()
    let halved = new Exhaustion()
    for (let i = 0; i < 600; i++) {
      const value = 0.3 + 0.001 * i + 0.05 * ((i % 17) / 17)
      if (i % 37 === 0) {
        const state = JSON.parse(JSON.stringify(halved.snapshot()))
        halved = new Exhaustion()
        halved.restore(state)
      }
      expect(halved.push(i, value)).toEqual(whole.push(i, value))
    }
  })
})
