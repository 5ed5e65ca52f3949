import type { Reading } from '../../../../src/core/model.ts'
import { formatBytes, formatDuration } from '../../words.ts'

export interface Course {
  readonly at: readonly number[]
  readonly used: readonly Reading[]
  readonly totalBytes: Reading
  readonly isLive: boolean
  /** A run reports what its allocator needs: its figures are used instead of the device's. */
  readonly hasAllocator: boolean
}

export interface Reason {
  readonly title: string
  readonly text: string
  /** False: a forecast was not possible. */
  readonly isJudged: boolean
}

const STEADY = 0.01
const LEAST_MS = 30_000
const LOOK_BACK_MS = 5 * 60_000

export function whyNoForecast({ at, used, totalBytes, isLive, hasAllocator }: Course): Reason {
  if (!isLive)
    return { title: 'No forecast without current readings', text: 'It returns with the next readings of this GPU.', isJudged: false }
  const last = used.findLastIndex((bytes) => bytes !== null)
  const end = at[last]
  const bytes = used[last] ?? null
  if (totalBytes === null || end === undefined || bytes === null)
    return { title: 'No forecast is possible', text: 'This GPU does not report how much of its memory is in use.', isJudged: false }
  const first = used.findIndex((value, index) => value !== null && (at[index] ?? 0) >= end - LOOK_BACK_MS)
  const before = used[first] ?? bytes
  const spanMs = end - (at[first] ?? end)
  if (spanMs < LEAST_MS)
    return { title: 'Too early to tell', text: 'A forecast needs at least half a minute of readings.', isJudged: false }
  const span = formatDuration(spanMs)
  const followed = hasAllocator ? ' This follows what the training needs, not its cache.' : ''
  const change = bytes - before
  if (Math.abs(change) < STEADY * totalBytes)
    return { title: 'Memory is steady', text: `It changed by less than 1% of the card in the last ${span}.${followed}`, isJudged: true }
  if (change < 0) return { title: 'Memory is falling', text: `${formatBytes(-change)} less than ${span} ago.${followed}`, isJudged: true }
  return {
    title: 'Memory grew, but no OOM is ahead',
    text: `${formatBytes(change)} more than ${span} ago: not steadily enough for a forecast, or full in more than two days.${followed}`,
    isJudged: true,
  }
}
