/** A series without a leak: it does not grow, or it was watched for too short a time to say so. */
import type { Reading } from '../model.ts'
import { LEAK_DEFAULTS } from './leak-verdict.ts'

export type CourseAnswer = 'no leak' | 'still growing' | 'too short' | 'not known'

export interface MemoryCourse {
  /** Samples, and the time from the first to the last. */
  readonly count: number
  readonly spanMs: number
  /** Points in time, and the lowest use around each. */
  columns(): { readonly at: readonly number[]; readonly min: readonly Reading[] }
}

/** Ruling out a leak takes longer than finding one. */
const LEAST_MS = 30_000
const PARTS = 8

/** `leastBytes`: less growth is no leak. */
export function judgeCourse(course: MemoryCourse, leastBytes: number): CourseAnswer {
  if (course.count === 0) return 'not known'
  if (isStillGrowing(course.columns(), leastBytes)) return 'still growing'
  return course.spanMs < LEAST_MS || course.count < LEAK_DEFAULTS.leastBlocks ? 'too short' : 'no leak'
}

/** Whether its lows climb from part to part, up to the last one, by `leastBytes` from the second quarter to the last. */
function isStillGrowing({ at, min }: ReturnType<MemoryCourse['columns']>, leastBytes: number): boolean {
  const first = at[0] ?? 0
  const span = (at.at(-1) ?? 0) - first
  if (span <= 0) return false
  const lows = new Array<number>(PARTS).fill(Number.POSITIVE_INFINITY)
  min.forEach((value, index) => {
    const part = Math.min(PARTS - 1, Math.floor((((at[index] ?? 0) - first) / span) * PARTS))
    if (value !== null) lows[part] = Math.min(lows[part] ?? value, value)
  })
  const low = (from: number) => Math.min(lows[from] ?? 0, lows[from + 1] ?? 0)
  const [second, third, last] = [low(2), low(4), low(6)]
  const isClimbing = last - second >= leastBytes && last - third >= leastBytes / 4 && third - second >= leastBytes / 4
  // A rise that stopped in the last quarter is over.
  return isClimbing && (lows[7] ?? 0) - (lows[6] ?? 0) >= leastBytes / 16
}
