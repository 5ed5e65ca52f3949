import { describe, expect, it } from 'vitest'
import { throttleBands, totals } from './throttle-bands.ts'

describe('throttleBands', () => {
  it('joins what follows each other, names the worst, and leaves idle out', () => {
    const bands = throttleBands([0, 10, 20, 30, 40, 50], [0x1, 0x4, 0x4 | 0x1, 0x44, null, 0], 0)
    expect(bands).toEqual([
      { from: 10, to: 30, label: 'power cap', tone: 'muted' },
      { from: 30, to: 40, label: 'too hot (hardware slowdown)', tone: 'critical' },
    ])
    expect([...totals(bands)]).toEqual([
      ['power cap', { ms: 20, tone: 'muted' }],
      ['too hot (hardware slowdown)', { ms: 10, tone: 'critical' }],
    ])
  })

  it('covers an averaged step as a whole', () => {
    expect(throttleBands([0, 60], [0x20, 0], 60)).toEqual([{ from: 0, to: 60, label: 'too hot', tone: 'warning' }])
  })
})
