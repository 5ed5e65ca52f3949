/** Bytes from a terminal → keys. Pure, and whatever comes in, something sensible comes out. */

export type Key =
  | { readonly type: 'key'; readonly name: string }
  | { readonly type: 'char'; readonly char: string }
  | { readonly type: 'click'; readonly x: number; readonly y: number }
  | { readonly type: 'wheel'; readonly x: number; readonly y: number; readonly up: boolean }

const CSI: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  Z: 'backtab',
  '1~': 'home',
  '2~': 'insert',
  '3~': 'delete',
  '4~': 'end',
  '5~': 'pageup',
  '6~': 'pagedown',
  '7~': 'home',
  '8~': 'end',
  '11~': 'f1',
  '12~': 'f2',
  '13~': 'f3',
  '14~': 'f4',
  '15~': 'f5',
  '17~': 'f6',
  '18~': 'f7',
  '19~': 'f8',
  '20~': 'f9',
  '21~': 'f10',
}
const SS3: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
}
const CONTROL: Readonly<Record<string, string>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl-c',
  '\u000c': 'ctrl-l',
  '\u0015': 'ctrl-u',
  '\u001a': 'ctrl-z',
}
/** A sequence longer than this is no key of any terminal. */
const LONGEST = 64
const WHEEL_UP = 64
const WHEEL_DOWN = 65

export class KeyReader {
  #pending = ''

  /** True when what came last may be the beginning of a longer sequence. */
  get waits(): boolean {
    return this.#pending !== ''
  }

  feed(text: string): Key[] {
    this.#pending += text
    const keys: Key[] = []
    while (this.#pending !== '') {
      const taken = this.#next(keys)
      if (taken === 0) break
      this.#pending = this.#pending.slice(taken)
    }
    return keys
  }

  /** Nothing more came: a lone escape is the Escape key, half a sequence is forgotten. */
  flush(): Key[] {
    const isEscape = this.#pending === '\u001b'
    this.#pending = ''
    return isEscape ? [{ type: 'key', name: 'escape' }] : []
  }

  /** How many characters were used; 0: more have to come first. */
  #next(keys: Key[]): number {
    const text = this.#pending
    const first = text[0] ?? ''
    if (first !== '\u001b') return plain(text, keys)
    const second = text[1]
    if (second === undefined) return 0
    if (second === '[') return csi(text, keys)
    if (second === 'O') {
      const third = text[2]
      if (third === undefined) return 0
      const name = SS3[third]
      if (name) keys.push({ type: 'key', name })
      return 3
    }
    keys.push({ type: 'key', name: 'escape' })
    return 1
  }
}

function plain(text: string, keys: Key[]): number {
  const char = String.fromCodePoint(text.codePointAt(0) ?? 0)
  const name = CONTROL[char]
  if (name) keys.push({ type: 'key', name })
  else if (char >= ' ') keys.push({ type: 'char', char })
  return char.length
}

function csi(text: string, keys: Key[]): number {
  let end = 2
  while (end < text.length && !isFinal(text.charCodeAt(end))) {
    end++
    if (end > LONGEST) return end
  }
  if (end >= text.length) return 0
  const body = text.slice(2, end)
  const final = text[end] ?? ''
  if (final === '[' && body === '') return linuxFunctionKey(text, keys)
  if (body.startsWith('<')) mouse(body, final, keys)
  else {
    // Modifiers (`1;5A`, `5;2~`) are let go: the key is what counts.
    const name = final === '~' ? CSI[`${body.split(';')[0]}~`] : CSI[final]
    if (name) keys.push({ type: 'key', name })
  }
  return end + 1
}

/** The Linux console sends F1–F5 as `ESC [ [ A` … `E`. */
function linuxFunctionKey(text: string, keys: Key[]): number {
  const letter = text[3]
  if (letter === undefined) return 0
  const number = letter.charCodeAt(0) - 0x40
  if (number >= 1 && number <= 5) keys.push({ type: 'key', name: `f${number}` })
  return 4
}

function isFinal(code: number): boolean {
  return code >= 0x40 && code <= 0x7e
}

function mouse(body: string, final: string, keys: Key[]): void {
  const [button = -1, x = 0, y = 0] = body.slice(1).split(';').map(Number)
  if (!(x >= 1) || !(y >= 1)) return
  const place = { x: x - 1, y: y - 1 }
  if (button === WHEEL_UP || button === WHEEL_DOWN) keys.push({ type: 'wheel', ...place, up: button === WHEEL_UP })
  else if (button === 0 && final === 'M') keys.push({ type: 'click', ...place })
}
