import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { difference } from './diff.ts'
import { BOLD, Grid, SELECTED, TONE } from './grid.ts'
import { textWidth } from './text-width.ts'
import { createTheme } from './theme.ts'

const theme = createTheme('dark', 'many', false)

/** As little of a terminal as the writer uses; a wide character that is half overwritten vanishes, as in real ones. */
class Emulator {
  readonly chars: string[]
  readonly styles: string[]
  readonly width: number

  constructor(width: number, height: number) {
    this.width = width
    this.chars = new Array<string>(width * height).fill(' ')
    this.styles = new Array<string>(width * height).fill('')
  }

  write(text: string): void {
    let at = 0
    let style = ''
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is read
    const parts = text.matchAll(/\u001b\[([?0-9;]*)([A-Za-z])|([^\u001b][\p{Mn}\p{Me}]*)/gu)
    for (const [, body = '', final, char] of parts) {
      if (final === 'H') {
        const [row = 1, column = 1] = body.split(';').map(Number)
        at = (row - 1) * this.width + column - 1
      } else if (final === 'm') style = body
      else if (final === 'J') this.chars.fill(' ')
      else if (char !== undefined) at += this.#put(at, char, style)
    }
  }

  #put(at: number, char: string, style: string): number {
    const width = textWidth(char)
    for (let index = at; index < at + width; index++) {
      if (this.chars[index] === '') this.chars[index - 1] = ' '
      if (this.chars[index + 1] === '') this.chars[index + 1] = ' '
      this.chars[index] = index === at ? char : ''
      this.styles[index] = style
    }
    return width
  }
}

const write = fc.record({
  x: fc.integer({ min: -2, max: 14 }),
  y: fc.integer({ min: -1, max: 5 }),
  text: fc.oneof(fc.string({ unit: 'binary', maxLength: 8 }), fc.constantFrom('日本語', 'ab', '⣿⣿', 'é', '👩‍👧x', 'e\u0301')),
  style: fc.constantFrom(TONE.text, TONE.critical | BOLD, TONE.muted | SELECTED),
})

function drawn(writes: readonly { x: number; y: number; text: string; style: number }[]): Grid {
  const grid = new Grid(13, 5)
  for (const { x, y, text, style } of writes) grid.put(x, y, text, style)
  return grid
}

describe('difference', () => {
  it('brings a terminal from any screen to any other', () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 12 }), fc.array(write, { maxLength: 12 }), (first, second) => {
        const terminal = new Emulator(13, 5)
        const [before, after] = [drawn(first), drawn(second)]
        terminal.write(difference(null, before, theme))
        expect(terminal.chars).toEqual(before.chars)
        terminal.write(difference(before, after, theme))
        expect(terminal.chars).toEqual(after.chars)
      }),
    )
  })

  it('is nothing when nothing changed', () => {
    expect(difference(drawn([{ x: 0, y: 0, text: 'abc', style: 0 }]), drawn([{ x: 0, y: 0, text: 'abc', style: 0 }]), theme)).toBe('')
  })

  it('is only what changed', () => {
    const text = difference(drawn([{ x: 0, y: 0, text: 'abc', style: 0 }]), drawn([{ x: 0, y: 0, text: 'abd', style: 0 }]), theme)
    expect(text).toContain('\u001b[1;3H')
    expect(text).not.toMatch(/[ab]\S*$/)
    expect(text.length).toBeLessThan(40)
  })

  it('wipes the screen when the size is another', () => {
    expect(difference(new Grid(10, 2), new Grid(11, 2), theme)).toContain('\u001b[2J')
  })
})

describe('theme', () => {
  it('has no color without colors', () => {
    const mono = createTheme('dark', 'none', false)
    for (let style = 0; style < 128; style++) expect(mono.sgr(style)).not.toMatch(/[;[](3\d|4\d|38|48|9\d)[;m]/)
  })

  it('distinguishes normal, warning and critical without color, too', () => {
    const mono = createTheme('mono', 'many', false)
    expect(new Set([TONE.text, TONE.warning, TONE.critical].map((tone) => mono.sgr(tone))).size).toBe(3)
  })
})
