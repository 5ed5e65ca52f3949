import { describe, expect, it } from 'vitest'
import { csvOf } from './csv.ts'

describe('csvOf', () => {
  it('writes a line per moment, empty where nothing is known', () => {
    const text = csvOf([0, 1000], [{ label: 'draw', values: [1.5, null] }], 'time')
    expect(text).toBe('time,draw\r\n1970-01-01T00:00:00.000Z,1.5\r\n1970-01-01T00:00:01.000Z,\r\n')
  })

  it('quotes labels and lets none become a formula', () => {
    const text = csvOf(
      [3],
      [
        { label: '=cmd()', values: [Number.NaN] },
        { label: 'a,"b"', values: [2] },
      ],
      'step',
    )
    expect(text).toBe(`step,'=cmd(),"a,""b"""\r\n3,NaN,2\r\n`)
  })
})
