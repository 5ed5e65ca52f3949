import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Key, KeyReader } from './keys.ts'

function read(...pieces: string[]): Key[] {
  const reader = new KeyReader()
  return [...pieces.flatMap((piece) => reader.feed(piece)), ...reader.flush()]
}

const named = (name: string): Key => ({ type: 'key', name })

describe('keys', () => {
  it.each([
    ['\u001b[A', 'up'],
    ['\u001bOB', 'down'],
    ['\u001b[5~', 'pageup'],
    ['\u001b[1;5C', 'right'],
    ['\u001b[H', 'home'],
    ['\u001b[4~', 'end'],
    ['\u001b[15~', 'f5'],
    ['\u001b[[E', 'f5'],
    ['\u001b[21~', 'f10'],
    ['\u001b[Z', 'backtab'],
    ['\u001b', 'escape'],
    ['\t', 'tab'],
    ['\r', 'enter'],
    ['\u007f', 'backspace'],
    ['\u0003', 'ctrl-c'],
  ])('%j is %s', (text, name) => {
    expect(read(text)).toEqual([named(name)])
  })

  it('reads characters of any language', () => {
    expect(read('qß日👍')).toEqual(['q', 'ß', '日', '👍'].map((char) => ({ type: 'char', char })))
  })

  it('reads the mouse', () => {
    expect(read('\u001b[<0;10;5M\u001b[<0;10;5m\u001b[<64;1;1M\u001b[<65;2;3M')).toEqual([
      { type: 'click', x: 9, y: 4 },
      { type: 'wheel', x: 0, y: 0, up: true },
      { type: 'wheel', x: 1, y: 2, up: false },
    ])
  })

  it('reads the same however the bytes are cut', () => {
    const text = 'a\u001b[A\u001b[<0;10;5M\u001bOPz\u001b[21~'
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 6 }), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
        expect(read(...places.slice(1).map((end, index) => text.slice(places[index], end)))).toEqual(read(text))
      }),
    )
  })

  it('survives whatever comes, and keeps nothing of it', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 100 })), (pieces) => {
        const reader = new KeyReader()
        for (const piece of pieces) reader.feed(`\u001b[${piece}`)
        reader.flush()
        expect(reader.waits).toBe(false)
        expect(reader.feed('q')).toEqual([{ type: 'char', char: 'q' }])
      }),
    )
  })
})
