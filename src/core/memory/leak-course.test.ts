import { describe, expect, it } from 'vitest'
import type { Reading } from '../model.ts'
import { judgeCourse } from './leak-course.ts'

/** One sample each 100 ms. */
function judged(value: (i: number) => Reading, count = 400): string {
  const at = Array.from({ length: count }, (_, i) => i * 100)
  return judgeCourse({ count, spanMs: at.at(-1) ?? 0, columns: () => ({ at, min: at.map((_, i) => value(i)) }) }, 100)
}

describe('a series in which no leak was found', () => {
  it('is still growing when it rises to the end, with a sawtooth on it too, however short it is', () => {
    expect(judged((i) => i)).toBe('still growing')
    expect(judged((i) => i + (i % 20) * 10)).toBe('still growing')
    expect(judged((i) => 100 * i, 20)).toBe('still growing')
  })

  it('does not leak after a jump at the start, a rise that came to rest, a level, a fall, or a wave', () => {
    for (const value of [
      (i: number) => Math.min(i, 290),
      (i: number) => (i < 190 ? i : 190),
      (i: number) => (i < 60 ? i * 100 : 6000),
      () => 5,
      (i: number) => -i,
      (i: number) => 1000 * Math.sin(i / 10),
    ])
      expect(judged(value)).toBe('no leak')
  })

  it('was watched for too short a time below half a minute or ten samples', () => {
    expect(judged(() => 5, 299)).toBe('too short')
    expect(judged(() => 5, 302)).toBe('no leak')
    const seldom = { count: 9, spanMs: 80_000, columns: () => ({ at: [0, 80_000], min: [5, 5] }) }
    expect(judgeCourse(seldom, 100)).toBe('too short')
    expect(judgeCourse({ ...seldom, count: 10 }, 100)).toBe('no leak')
  })

  it('is not known where nothing was read', () => {
    expect(judgeCourse({ count: 0, spanMs: 0, columns: () => ({ at: [], min: [] }) }, 100)).toBe('not known')
  })
})
