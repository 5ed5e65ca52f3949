import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openRecording, type RecordingItem } from '../core/recording/recording.ts'
import { ReplayPlayer } from './replay-player.ts'
import type { ReplayData } from './screen-data.ts'
import { EventReader } from './sse.ts'
import { terminalSize } from './terminal.ts'
import { colorDepth, speaksUtf8 } from './theme.ts'

const TRACE = fileURLToPath(new URL('../../fixtures/traces/healthy', import.meta.url))

describe('server-sent events', () => {
  const text = 'id: a-1\nevent: hello\nretry: 2000\ndata: {"x":1}\n\n:\n\nevent: tick\ndata: {}\n\n'

  it('are read whole however they are cut', () => {
    const whole = [
      { id: 'a-1', event: 'hello', data: '{"x":1}' },
      { id: null, event: 'tick', data: '{}' },
    ]
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
        const reader = new EventReader()
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
        expect(places.slice(1).flatMap((end, index) => reader.feed(text.slice(places[index], end)))).toEqual(whole)
      }),
    )
  })

  it('have an end', () => {
    const reader = new EventReader()
    expect(() => {
      for (let piece = 0; piece < 20; piece++) reader.feed('x'.repeat(1024 * 1024))
    }).toThrow(/expected server-sent events/)
  })
})

describe('replay', () => {
  it('goes forth and back to exactly the same moments', async () => {
    let delivered: RecordingItem[] = []
    let resets = 0
    let last: ReplayData | null = null
    const waiting: { test: (data: ReplayData) => boolean; resolve: (data: ReplayData) => void }[] = []
    const player = new ReplayPlayer({
      open: () => openRecording(TRACE),
      speed: 1,
      reset: () => {
        resets++
        delivered = []
      },
      deliver: (item) => delivered.push(item),
      onChange: (data) => {
        last = data
        for (const one of waiting.splice(0)) one.test(data) ? one.resolve(data) : waiting.push(one)
      },
      onFailure: (error) => {
        throw error
      },
    })
    const reached = (test: (data: ReplayData) => boolean) =>
      new Promise<ReplayData>((resolve) => {
        if (last && test(last)) resolve(last)
        else waiting.push({ test, resolve })
      })
    await player.start()
    player.toggle()
    expect(last).toMatchObject({ state: 'paused' })
    const first = delivered[0]?.at ?? 0
    player.seek(20_000)
    const at = (await reached((data) => data.state === 'paused' && data.at > first + 15_000)).at
    expect(at).toBeLessThanOrEqual(first + 20_000)
    const forth = delivered.map((item) => item.at)
    player.seek(-10_000)
    await reached((data) => data.state === 'paused' && data.at <= first + 10_000)
    expect(resets).toBe(1)
    expect(delivered.map((item) => item.at)).toEqual(forth.slice(0, delivered.length))
    player.seek(3_600_000)
    expect((await reached((data) => data.state === 'ended')).lastAt).toBe(delivered.at(-1)?.at)
    await player.stop()
  })

  it('says that there is nothing to play', async () => {
    const player = new ReplayPlayer({
      open: () => openRecording('/nonexistent'),
      speed: 1,
      reset: () => undefined,
      deliver: () => undefined,
      onChange: () => undefined,
      onFailure: () => undefined,
    })
    await expect(player.start()).rejects.toThrow(/cannot read the recording/)
  })
})

describe('the terminal', () => {
  it('counts first, then COLUMNS and LINES, then 80×24', () => {
    expect(terminalSize({ columns: 100, rows: 40 }, { COLUMNS: '1' })).toEqual({ columns: 100, rows: 40 })
    expect(terminalSize({ columns: 0, rows: 0 }, { COLUMNS: '60', LINES: '20' })).toEqual({ columns: 60, rows: 20 })
    expect(terminalSize({}, { COLUMNS: 'x', LINES: '-3' })).toEqual({ columns: 80, rows: 24 })
  })

  it('has the colors and characters that it says', () => {
    expect(colorDepth({ TERM: 'xterm-256color', NO_COLOR: '1' })).toBe('none')
    expect(colorDepth({ TERM: 'xterm-256color' })).toBe('many')
    expect(colorDepth({ TERM: 'xterm' })).toBe('few')
    expect(colorDepth({ TERM: 'dumb' })).toBe('none')
    expect(speaksUtf8({ LANG: 'de_DE.UTF-8' })).toBe(true)
    expect(speaksUtf8({ LANG: 'C' })).toBe(false)
    expect(speaksUtf8({})).toBe(true)
  })
})
