/** One line on standard error that says how far it is, redrawn in place; nothing where that is not a terminal. */

const EVERY_MS = 500

export class ProgressLine {
  readonly #out: NodeJS.WriteStream
  readonly #text: () => string
  readonly #timer: NodeJS.Timeout | null
  #isDrawn = false

  constructor(text: () => string, out: NodeJS.WriteStream = process.stderr) {
    this.#out = out
    this.#text = text
    this.#timer = out.isTTY === true ? setInterval(() => this.draw(), EVERY_MS).unref() : null
  }

  draw(): void {
    if (this.#timer === null) return
    const columns = this.#out.columns || 80
    this.#out.write(`\r\u001b[2K${this.#text().slice(0, Math.max(1, columns - 1))}`)
    this.#isDrawn = true
  }

  /** Takes the line away, so that something else can be printed. */
  clear(): void {
    if (this.#isDrawn) this.#out.write('\r\u001b[2K')
    this.#isDrawn = false
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.clear()
  }
}
