/** The median of the last values: plain data, O(window) per value. */
import { ascending } from '../core/memory/statistics.ts'

/** Not part of a saved state: made anew from the ring. */
const SORTED = Symbol('sorted')

export interface RollingMedian {
  readonly cap: number
  /** In order of arrival; `next` is the oldest once full. */
  ring: number[]
  next: number
  [SORTED]?: number[]
}

export function rollingMedian(cap: number): RollingMedian {
  return { cap, ring: [], next: 0 }
}

export function push(window: RollingMedian, value: number): void {
  const { ring, cap } = window
  const sorted = sortedOf(window)
  if (ring.length >= cap) {
    sorted.splice(position(sorted, ring[window.next] ?? 0), 1)
    ring[window.next] = value
    window.next = (window.next + 1) % cap
  } else ring.push(value)
  sorted.splice(position(sorted, value), 0, value)
}

export function sortedOf(window: RollingMedian): number[] {
  window[SORTED] ??= [...window.ring].sort(ascending)
  return window[SORTED]
}

/** NaN while it is empty. */
export function median(window: RollingMedian): number {
  const sorted = sortedOf(window)
  const half = sorted.length >> 1
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? upper) + upper) / 2
}

export function clear(window: RollingMedian): void {
  window.ring = []
  window[SORTED] = []
  window.next = 0
}

/** First index whose value is not below. */
function position(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
