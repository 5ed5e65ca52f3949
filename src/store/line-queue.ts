/** One line on its way to disk; `text` ends with a newline, `at` is its time. */
export interface Line {
  readonly text: string
  readonly at: number
  readonly bytes: number
}

/** First in, first out, with a known size in bytes; taking from the front costs the same at any length. */
export class LineQueue {
  #lines: Line[] = []
  #head = 0
  #bytes = 0

  get length(): number {
    return this.#lines.length - this.#head
  }

  get bytes(): number {
    return this.#bytes
  }

  push(text: string, at: number): void {
    const bytes = Buffer.byteLength(text)
    this.#lines.push({ text, at, bytes })
    this.#bytes += bytes
  }

  shift(): Line | undefined {
    const line = this.#lines[this.#head]
    if (!line) return undefined
    this.#head += 1
    this.#bytes -= line.bytes
    if (this.#head > 1024 && this.#head * 2 > this.#lines.length) {
      this.#lines = this.#lines.slice(this.#head)
      this.#head = 0
    }
    return line
  }

  /** As many lines as fit, and at least one. */
  take(maxBytes: number): Line[] {
    const taken: Line[] = []
    let bytes = 0
    for (let next = this.#lines[this.#head]; next; next = this.#lines[this.#head]) {
      if (taken.length > 0 && bytes + next.bytes > maxBytes) break
      bytes += next.bytes
      taken.push(next)
      this.shift()
    }
    return taken
  }

  /** Puts back in front what could not be written. */
  putBack(lines: readonly Line[]): void {
    if (lines.length === 0) return
    this.#lines = [...lines, ...this.#lines.slice(this.#head)]
    this.#head = 0
    for (const line of lines) this.#bytes += line.bytes
  }

  clear(): void {
    this.#lines = []
    this.#head = 0
    this.#bytes = 0
  }
}
