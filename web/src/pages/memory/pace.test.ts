import { describe, expect, it } from 'vitest'
import { pace } from './pace.ts'

const MIB = 1024 ** 2

describe('pace', () => {
  it('is by the minute, with as many digits as help', () => {
    expect(pace(MIB)).toBe('60 MiB/min')
    expect(pace(400 * MIB)).toBe('23.4 GiB/min')
    expect(pace(MIB / 20)).toBe('3.0 MiB/min')
    expect(pace(512 / 60)).toBe('512 B/min')
    expect(pace(-MIB)).toBe('-60 MiB/min')
  })
})
