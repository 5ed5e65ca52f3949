/** Texts by number, each kept once, as bytes; decoded only when somebody asks. */

const MOST_TEXTS = 1 << 22
const MOST_BYTES = 256 * 1024 ** 2
const TEXT_LIMIT = '(not kept: too many different texts)'

export class TextTable {
  #bytes = new Uint8Array(1 << 16)
  #used = 0
  /** Where text i ends; it begins where the one before ends. */
  #ends = new Int32Array(1 << 10)
  #hashes = new Int32Array(1 << 10)
  /** Open addressing: id + 1, or 0. */
  #slots = new Int32Array(1 << 12)
  count = 0
  /** Texts that came after the bounds were reached; all of them are one. */
  notKept = 0
  #overflow = -1

  /** `first`: texts that get the ids 0, 1, 2, … */
  constructor(first: readonly string[] = []) {
    for (const text of first) this.add(text)
  }

  add(text: string): number {
    const bytes = new TextEncoder().encode(text)
    return this.intern(bytes, 0, bytes.length)
  }

  intern(buffer: Uint8Array, from: number, to: number): number {
    let hash = 0x811c9dc5 ^ (to - from)
    for (let i = from; i < to; i++) hash = Math.imul(hash ^ (buffer[i] as number), 0x01000193)
    hash ^= hash >>> 15
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (;;) {
      const id = (this.#slots[slot] as number) - 1
      if (id < 0) break
      if (this.#hashes[id] === hash && this.#isSame(id, buffer, from, to)) return id
      slot = (slot + 1) & mask
    }
    if (this.count >= MOST_TEXTS || this.#used + (to - from) > MOST_BYTES) return this.#tooMany()
    return this.#append(hash, slot, buffer, from, to)
  }

  text(id: number): string {
    const from = id === 0 ? 0 : (this.#ends[id - 1] as number)
    return new TextDecoder().decode(this.#bytes.subarray(from, this.#ends[id] as number))
  }

  #isSame(id: number, buffer: Uint8Array, from: number, to: number): boolean {
    const begin = id === 0 ? 0 : (this.#ends[id - 1] as number)
    if ((this.#ends[id] as number) - begin !== to - from) return false
    const bytes = this.#bytes
    for (let i = from, j = begin; i < to; i++, j++) if (buffer[i] !== bytes[j]) return false
    return true
  }

  #append(hash: number, slot: number, buffer: Uint8Array, from: number, to: number): number {
    const length = to - from
    if (this.#used + length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#used + length))
      grown.set(this.#bytes.subarray(0, this.#used))
      this.#bytes = grown
    }
    if (this.count === this.#ends.length) {
      this.#ends = doubled(this.#ends)
      this.#hashes = doubled(this.#hashes)
    }
    this.#bytes.set(buffer.subarray(from, to), this.#used)
    this.#used += length
    const id = this.count++
    this.#ends[id] = this.#used
    this.#hashes[id] = hash
    this.#slots[slot] = id + 1
    if (this.count * 2 > this.#slots.length) this.#rehash()
    return id
  }

  #rehash(): void {
    const slots = new Int32Array(this.#slots.length * 2)
    const mask = slots.length - 1
    for (let id = 0; id < this.count; id++) {
      let slot = (this.#hashes[id] as number) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = id + 1
    }
    this.#slots = slots
  }

  #tooMany(): number {
    this.notKept++
    if (this.#overflow < 0) {
      const bytes = new TextEncoder().encode(TEXT_LIMIT)
      // Its slot is not looked up by content: one entry past the bound, once.
      this.#overflow = this.#append(0, this.#freeSlot(), bytes, 0, bytes.length)
    }
    return this.#overflow
  }

  #freeSlot(): number {
    let slot = 0
    while (this.#slots[slot] !== 0) slot++
    return slot
  }
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(array.length * 2)
  grown.set(array)
  return grown
}
