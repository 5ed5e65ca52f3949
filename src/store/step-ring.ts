/** No value: no memory is this large (4 TiB in KiB, less one). */
const NONE = 0xffff_ffff
const KIBIBYTE = 1024

/** The largest value in each of the newest steps of time, to the KiB, in four bytes. A step's place follows from its number. */
export class StepRing {
  readonly #cells: Uint32Array
  /** Number of the newest step; NaN before the first value. */
  #last = Number.NaN

  constructor(capacity: number) {
    this.#cells = new Uint32Array(capacity).fill(NONE)
  }

  get bytes(): number {
    return this.#cells.byteLength
  }

  /** A clock that was set back drops the steps in the future. */
  put(step: number, bytes: number): void {
    const value = Math.min(NONE - 1, Math.max(0, Math.round(bytes / KIBIBYTE)))
    if (step > this.#last) this.#clear(this.#last + 1, step)
    else if (step < this.#last) this.#clear(step + 1, this.#last)
    const held = this.get(step)
    this.#last = step
    const slot = this.#slot(step)
    const before = this.#cells[slot] ?? NONE
    if (held === null || before === NONE || value > before) this.#cells[slot] = value
  }

  /** Bytes; null where there was no value, or too long ago. */
  get(step: number): number | null {
    if (!(step <= this.#last && step > this.#last - this.#cells.length)) return null
    const value = this.#cells[this.#slot(step)] ?? NONE
    return value === NONE ? null : value * KIBIBYTE
  }

  #clear(first: number, last: number): void {
    if (last - first >= this.#cells.length) this.#cells.fill(NONE)
    else for (let step = first; step <= last; step++) this.#cells[this.#slot(step)] = NONE
  }

  #slot(step: number): number {
    const { length } = this.#cells
    return ((step % length) + length) % length
  }
}
