import { describe, expect, it } from 'vitest'
import { evidenceRows, guiltyLine } from './evidence.ts'

describe('evidenceRows', () => {
  it('puts the unit of the name behind the figure, in both spellings', () => {
    const rows = evidenceRows({ riseBytes: 3 * 1024 ** 3, bytesPerSecond: 2048, step_seconds: 0.25, levelRatio: 0.5, source: 'device' }, 0)
    expect(rows).toEqual([
      { label: 'rise', value: '3.0 GiB' },
      { label: 'pace', value: '2 KiB/s' },
      { label: 'step', value: '0.25 s' },
      { label: 'level', value: '50 %' },
      { label: 'source', value: 'device' },
    ])
  })

  it('leaves out what is not known, and says yes and no', () => {
    expect(evidenceRows({ bytesPerStep: null, isSlow: true, trendScore: 4.2 }, 0)).toEqual([
      { label: 'is slow', value: 'yes' },
      { label: 'trend score', value: '4.2' },
    ])
  })
})

describe('guiltyLine', () => {
  it('finds the line where the evidence names one', () => {
    expect(guiltyLine({ riseBytes: 1, guiltyLine: 'train.py:42' })).toBe('train.py:42')
    expect(evidenceRows({ guiltyLine: 'train.py:42' }, 0)).toEqual([])
    expect(guiltyLine({ riseBytes: 1 })).toBeNull()
  })
})
