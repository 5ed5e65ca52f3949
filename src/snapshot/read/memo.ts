/** What the file gave a number to, for later reference: tokens, only ever added. */
import { PickleFault } from './opcodes.ts'
import { KIND_MASK, NUMBER } from './tokens.ts'

const CHUNK_BITS = 18
const CHUNK = 1 << CHUNK_BITS
/** Real files have one entry for 20 to 60 bytes. */
const LEAST_BYTES_PER_ENTRY = 8
const FREE_ENTRIES = 1 << 20
const MOST_ENTRIES = 2 ** 27

export class Memo {
  /** In pieces, so that growing copies nothing. */
  readonly #chunks: Int32Array[] = []
  /** Numbers are never given one by PyTorch or Python; other writers may. */
  readonly #numbers = new Map<number, number>()
  count = 0

  add(token: number, number: number): void {
    const slot = this.count & (CHUNK - 1)
    if (slot === 0) this.#chunks.push(new Int32Array(CHUNK))
    ;(this.#chunks[this.#chunks.length - 1] as Int32Array)[slot] = token
    if ((token & KIND_MASK) === NUMBER) this.#numbers.set(this.count, number)
    this.count++
  }

  clear(): void {
    this.#chunks.length = 0
    this.#numbers.clear()
    this.count = 0
  }

  /** The index has to be below `count`. */
  get(index: number): number {
    return (this.#chunks[index >>> CHUNK_BITS] as Int32Array)[index & (CHUNK - 1)] as number
  }

  /** Once a container is filled its entry says what it has become. */
  set(index: number, token: number): void {
    ;(this.#chunks[index >>> CHUNK_BITS] as Int32Array)[index & (CHUNK - 1)] = token
  }

  numberAt(index: number): number {
    return this.#numbers.get(index) ?? Number.NaN
  }

  /** A file that is little more than entries would cost more memory than it has bytes. */
  check(offset: number): void {
    if (this.count > MOST_ENTRIES || (this.count > FREE_ENTRIES && this.count * LEAST_BYTES_PER_ENTRY > offset))
      throw new PickleFault(`${this.count} memo entries in ${offset} bytes: more than a memory snapshot has`, offset)
  }
}
