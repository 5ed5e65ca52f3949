import { describe, expect, it } from 'vitest'
import { whyNoForecast } from './no-forecast.ts'

const GIB = 1024 ** 3
const course = (used: readonly (number | null)[], parts: object = {}) => ({
  at: used.map((_, index) => index * 10_000),
  used,
  totalBytes: 80 * GIB,
  isLive: true,
  hasAllocator: false,
  ...parts,
})

describe('whyNoForecast', () => {
  it('says that memory is steady, falling or rising', () => {
    expect(whyNoForecast(course([40 * GIB, 40 * GIB, 40 * GIB, 40.1 * GIB])).title).toBe('Memory is steady')
    expect(whyNoForecast(course([40 * GIB, 30 * GIB, 20 * GIB, 10 * GIB]))).toEqual({
      title: 'Memory is falling',
      text: '30.0 GiB less than 30 s ago.',
      isJudged: true,
    })
    expect(whyNoForecast(course([10 * GIB, 40 * GIB, 10 * GIB, 14 * GIB])).title).toBe('Memory grew, but no OOM is ahead')
  })

  it('looks back five minutes and over gaps', () => {
    const long = [0, ...Array.from({ length: 40 }, () => 40 * GIB), null]
    expect(whyNoForecast(course(long)).title).toBe('Memory is steady')
  })

  it('does not judge what it cannot see', () => {
    for (const blind of [course([1, 2], { isLive: false }), course([null, null]), course([GIB, GIB])])
      expect(whyNoForecast(blind).isJudged).toBe(false)
    expect(whyNoForecast(course([1, 2], { isLive: false })).title).toBe('No forecast without current readings')
    expect(whyNoForecast(course([null, null])).title).toBe('No forecast is possible')
    expect(whyNoForecast(course([GIB, GIB, GIB, GIB], { totalBytes: null })).title).toBe('No forecast is possible')
    expect(whyNoForecast(course([GIB, GIB])).title).toBe('Too early to tell')
  })

  it('says when a run is followed instead', () => {
    expect(whyNoForecast(course([GIB, GIB, GIB, GIB], { hasAllocator: true })).text).toContain('not its cache')
  })
})
