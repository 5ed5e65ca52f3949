/** The terminal: taken over and given back as it was, whatever happens in between. */
import { writeSync } from 'node:fs'
import { difference } from './diff.ts'
import type { Grid } from './grid.ts'
import { type Key, KeyReader } from './keys.ts'
import type { Size } from './render.ts'
import type { Theme } from './theme.ts'

/** Other screen, no cursor, no wrapping, clicks and wheel in the SGR form. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?1000h\u001b[?1006h\u001b[0m\u001b[2J'
const LEAVE = '\u001b[?2026l\u001b[?1006l\u001b[?1000l\u001b[?7h\u001b[0m\u001b[?25h\u001b[?1049l'
/** Silence separates a lone Escape from the start of a sequence. */
const ESCAPE_MS = 40
const FALLBACK: Size = { columns: 80, rows: 24 }
const LARGEST = 1000

export interface TerminalHandlers {
  readonly onKey: (key: Key) => void
  readonly onResize: () => void
  /** Nobody is there any more. */
  readonly onGone: () => void
}

/** A terminal that says 0×0 (some serial lines and containers) is believed less than COLUMNS and LINES. */
export function terminalSize(out: { readonly columns?: number; readonly rows?: number }, env: NodeJS.ProcessEnv): Size {
  const choose = (own: number | undefined, variable: string | undefined, fallback: number): number => {
    const found = [own, Number(variable)].find((value) => value !== undefined && Number.isInteger(value) && value > 0)
    return Math.min(LARGEST, found ?? fallback)
  }
  return { columns: choose(out.columns, env.COLUMNS, FALLBACK.columns), rows: choose(out.rows, env.LINES, FALLBACK.rows) }
}

export class Terminal {
  /** Frames and bytes written since the start: what the benchmark looks at. */
  frames = 0
  bytes = 0
  readonly #in: NodeJS.ReadStream
  readonly #out: NodeJS.WriteStream
  readonly #handlers: TerminalHandlers
  readonly #keys = new KeyReader()
  #escapeTimer: NodeJS.Timeout | null = null
  #shown: Grid | null = null
  #isOpen = false
  #isGone = false

  constructor(input: NodeJS.ReadStream, out: NodeJS.WriteStream, handlers: TerminalHandlers) {
    this.#in = input
    this.#out = out
    this.#handlers = handlers
  }

  get size(): Size {
    return terminalSize(this.#out, process.env)
  }

  /** False while the terminal has not taken the last frame: a slow line gets fewer frames, not later ones. */
  get isReady(): boolean {
    return this.#isOpen && !this.#out.writableNeedDrain
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#out.on('error', this.#lost)
    this.#out.on('resize', this.#resized)
    process.on('exit', this.#restore)
    if (this.#in.isTTY) this.#in.setRawMode(true)
    this.#in.setEncoding('utf8')
    this.#in.on('data', this.#typed)
    this.#in.on('error', this.#lost)
    // What is not a terminal may end before it began, as /dev/null does.
    if (this.#in.isTTY) this.#in.on('end', this.#lost)
    this.#in.resume()
    this.#out.write(ENTER)
  }

  draw(grid: Grid, theme: Theme): void {
    const text = difference(this.#shown, grid, theme)
    this.#shown = grid
    if (text === '' || this.#isGone) return
    this.frames++
    this.bytes += text.length
    this.#out.write(text)
  }

  /** The next frame is written whole. */
  forget(): void {
    this.#shown = null
  }

  close(): void {
    if (!this.#isOpen) return
    this.#in.off('data', this.#typed)
    this.#in.off('end', this.#lost)
    this.#in.pause()
    this.#out.off('resize', this.#resized)
    process.off('exit', this.#restore)
    this.#restore()
    this.#isOpen = false
    if (this.#escapeTimer) clearTimeout(this.#escapeTimer)
  }

  /** Synchronous, because nothing else runs while a process ends. */
  readonly #restore = (): void => {
    if (this.#in.isTTY && !this.#isGone) this.#in.setRawMode(false)
    try {
      writeSync((this.#out as NodeJS.WriteStream & { fd: number }).fd, LEAVE)
    } catch (error) {
      // The terminal is gone or takes nothing now: there is nobody to restore it for, or the stream still can.
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') this.#out.write(LEAVE)
    }
  }

  readonly #lost = (): void => {
    this.#isGone = true
    this.#handlers.onGone()
  }

  readonly #resized = (): void => {
    this.#shown = null
    this.#handlers.onResize()
  }

  readonly #typed = (text: string): void => {
    if (this.#escapeTimer) clearTimeout(this.#escapeTimer)
    this.#escapeTimer = null
    for (const key of this.#keys.feed(text)) this.#handlers.onKey(key)
    if (!this.#keys.waits) return
    this.#escapeTimer = setTimeout(() => {
      for (const key of this.#keys.flush()) this.#handlers.onKey(key)
    }, ESCAPE_MS)
  }
}
