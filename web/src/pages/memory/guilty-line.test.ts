import { expect, it } from 'vitest'
import { evidenceRows } from '../../../../src/core/evidence.ts'
import { guiltyLine, isPlace } from './guilty-line.ts'

it('finds the line where the evidence names one', () => {
  const rows = evidenceRows({ riseBytes: 1, guiltyLine: 'train.py:42' }, String)
  expect(guiltyLine(rows)).toBe('train.py:42')
  expect(rows.filter((row) => !isPlace(row))).toEqual([{ label: 'rise', value: '1 B' }])
  expect(guiltyLine(evidenceRows({ riseBytes: 1 }, String))).toBeNull()
})
