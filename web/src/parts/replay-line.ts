/** The time line of a recording: places, speeds and keys. */
import type { PlaybackMark } from '../../../src/core/playback.ts'

export const SPEEDS: readonly number[] = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300]
const STEP_MS = 10_000
const LONG_STEP_MS = 60_000
/** A mark this close counts as reached. */
const REACHED_MS = 1000

export function speedText(speed: number): string {
  return `×${speed}`
}

/** 0–1 */
export function placeOnLine(at: number, firstAt: number, lastAt: number): number {
  return lastAt <= firstAt ? 0 : Math.max(0, Math.min(1, (at - firstAt) / (lastAt - firstAt)))
}

/** The next mark in a direction; null: there is none. `marks` in order of time. */
export function neighborMark(marks: readonly PlaybackMark[], at: number, direction: 1 | -1): PlaybackMark | null {
  const found = direction === 1 ? marks.find((mark) => mark.at > at + REACHED_MS) : marks.findLast((mark) => mark.at < at - REACHED_MS)
  return found ?? null
}

type Key = Pick<KeyboardEvent, 'key' | 'shiftKey' | 'altKey' | 'ctrlKey' | 'metaKey'>

interface Focused {
  matches(selector: string): boolean
  closest(selector: string): unknown
}

/** What a key does to the recording: milliseconds to move, or null where the key belongs to what has the focus. */
export function replayKey({ key, shiftKey, altKey, ctrlKey, metaKey }: Key, target: Focused): 'toggle' | number | null {
  if (altKey || ctrlKey || metaKey) return null
  const isLine = target.matches('.replay-slider')
  // Text, lists and charts use these keys themselves.
  if (!isLine && target.closest('input, select, textarea, [contenteditable], dialog, [tabindex="0"]') !== null) return null
  if (key === ' ') return target.matches('button, a, summary') ? null : 'toggle'
  const direction = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
  return direction === 0 ? null : direction * (shiftKey ? LONG_STEP_MS : STEP_MS)
}
