import { describe, expect, it } from 'vitest'
import { Swings } from './swings.ts'

describe('swings', () => {
  it('finds the lows and highs of a sawtooth', () => {
    const swings = new Swings()
    let completed = 0
    for (let i = 0; i < 200; i++) if (swings.push(i, 0.4 + 0.1 * ((i % 40) / 40))) completed++
    expect(completed).toBe(4)
    expect(swings.highs.map((turn) => turn.position)).toEqual([39, 79, 119, 159])
    expect(swings.lows.map((turn) => turn.position)).toEqual([0, 40, 80, 120, 160])
  })

  it('is not turned by noise below a hundredth of capacity', () => {
    const swings = new Swings()
    for (let i = 0; i < 500; i++) swings.push(i, 0.4 + 0.003 * ((i * 7919) % 3))
    expect(swings.highs).toEqual([])
  })

  it('takes the end of a pause after loading for the first low', () => {
    const swings = new Swings()
    for (let i = 0; i < 200; i++) swings.push(i, i < 2 ? 0 : i < 60 ? 0.4 : 0.4 + 0.1 * (((i - 60) % 40) / 40))
    expect(swings.lows[0]).toEqual({ position: 64, value: 0.4 })
  })

  it('keeps a bounded number of turns and survives a snapshot', () => {
    const whole = new Swings()
    const halved = new Swings()
    for (let i = 0; i < 10_000; i++) {
      const value = 0.5 + 0.2 * Math.sin(i / 5)
      if (i === 5000) halved.restore(JSON.parse(JSON.stringify(halved.snapshot())))
      expect(halved.push(i, value)).toBe(whole.push(i, value))
    }
    expect(whole.lows.length).toBeLessThanOrEqual(24)
    expect(halved.snapshot()).toEqual(whole.snapshot())
  })
})
