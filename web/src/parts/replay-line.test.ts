import { describe, expect, it } from 'vitest'
import type { PlaybackMark } from '../../../src/core/playback.ts'
import { neighborMark, placeOnLine, replayKey } from './replay-line.ts'

const mark = (at: number): PlaybackMark => ({ at, severity: 'warning', kind: 'leak', message: 'leaks', run: null })
const plain = { altKey: false, ctrlKey: false, metaKey: false, shiftKey: false }

/** What has the focus: `own` selectors match it, `around` those that it lies in. */
const target = (own: readonly string[] = [], around: readonly string[] = []) => ({
  matches: (selector: string) => selector.split(', ').some((one) => own.includes(one)),
  closest: (selector: string) => (selector.split(', ').some((one) => [...own, ...around].includes(one)) ? ({} as Element) : null),
})

describe('the time line', () => {
  it('has a place for every moment, and for those outside its ends', () => {
    expect([0, 50, 100, -5, 500].map((at) => placeOnLine(at, 0, 100))).toEqual([0, 0.5, 1, 0, 1])
    expect(placeOnLine(7, 7, 7)).toBe(0)
  })

  it('goes from mark to mark, and not to the one that is reached', () => {
    const marks = [mark(1000), mark(10_000), mark(20_000)]
    expect(neighborMark(marks, 10_000, 1)?.at).toBe(20_000)
    expect(neighborMark(marks, 10_000, -1)?.at).toBe(1000)
    expect(neighborMark(marks, 10_500, -1)?.at).toBe(1000)
    expect(neighborMark(marks, 20_000, 1)).toBeNull()
    expect(neighborMark([], 0, -1)).toBeNull()
  })
})

describe('its keys', () => {
  it('play and pause with Space, and move with the arrows', () => {
    expect(replayKey({ ...plain, key: ' ' }, target())).toBe('toggle')
    expect(replayKey({ ...plain, key: 'ArrowRight' }, target())).toBe(10_000)
    expect(replayKey({ ...plain, key: 'ArrowLeft', shiftKey: true }, target())).toBe(-60_000)
    expect(replayKey({ ...plain, key: 'ArrowLeft' }, target(['.replay-slider', 'input']))).toBe(-10_000)
    expect(replayKey({ ...plain, key: 'a' }, target())).toBeNull()
  })

  it('leave keys to what has the focus, and shortcuts to the browser', () => {
    expect(replayKey({ ...plain, key: ' ' }, target(['input']))).toBeNull()
    expect(replayKey({ ...plain, key: ' ' }, target(['button']))).toBeNull()
    expect(replayKey({ ...plain, key: 'ArrowRight' }, target(['[tabindex="0"]']))).toBeNull()
    expect(replayKey({ ...plain, key: 'ArrowLeft' }, target([], ['dialog']))).toBeNull()
    expect(replayKey({ ...plain, key: 'ArrowLeft', altKey: true }, target())).toBeNull()
  })
})
