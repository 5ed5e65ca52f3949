import { describe, expect, it } from 'vitest'
import { evidenceRows } from './evidence.ts'

describe('evidenceRows', () => {
  it('puts the unit of the name behind the figure, in both spellings', () => {
    const rows = evidenceRows(
      { riseBytes: 3 * 1024 ** 3, bytesPerSecond: 2048, step_seconds: 0.25, levelRatio: 0.5, source: 'device' },
      String,
    )
    expect(rows).toEqual([
      { label: 'rise', value: '3.0 GiB' },
      { label: 'pace', value: '2.0 KiB/s' },
      { label: 'step', value: '250 ms' },
      { label: 'level', value: '50%' },
      { label: 'source', value: 'device' },
    ])
  })

  it('leaves out what is not known, and says yes and no', () => {
    expect(evidenceRows({ bytesPerStep: null, isSlow: true, trendScore: 4.2, celsius: 91, seen_at: 5 }, (at) => `moment ${at}`)).toEqual([
      { label: 'is slow', value: 'yes' },
      { label: 'trend score', value: '4.2' },
      { label: 'celsius', value: '91 °C' },
      { label: 'seen', value: 'moment 5' },
    ])
  })
})
