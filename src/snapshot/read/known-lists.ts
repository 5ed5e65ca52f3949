/**
 * Lists of frames by their bytes. Equal stacks are written as equal runs of references (all but the first time), and most of a
 * file is such lists: recognizing the bytes saves taking them apart.
 */
import { int32, uint32 } from './bytes.ts'
import type { Memo } from './memo.ts'
import type { StackTable } from './stack-table.ts'
import { FRAME, KIND_BITS, KIND_MASK, STACK, token } from './tokens.ts'

const MOST_LISTS = 1 << 20
const MOST_BYTES = 128 * 1024 ** 2
const MOST_FRAMES = 1 << 10

export class KnownLists {
  /** Where the list that was recognized ends. */
  end = 0
  readonly #memo: Memo
  readonly #stacks: StackTable
  readonly #frames = new Int32Array(MOST_FRAMES)
  #bytes = new Uint8Array(1 << 16)
  #used = 0
  #froms = new Int32Array(1 << 10)
  #hashes = new Int32Array(1 << 10)
  #tokens = new Int32Array(1 << 10)
  /** Open addressing: entry + 1, or 0. */
  #slots = new Int32Array(1 << 12)
  #count = 0

  constructor(memo: Memo, stacks: StackTable) {
    this.#memo = memo
    this.#stacks = stacks
  }

  /** The token of the list whose EMPTY_LIST stands before `from`; -1: it has to be taken apart. It may be read up to `limit`. */
  recognize(buffer: Uint8Array, from: number, limit: number): number {
    const memo = this.#memo
    const put = buffer[from]
    const isPut = put === 0x94 || put === 0x71 || put === 0x72
    let at = from + (put === 0x94 ? 1 : put === 0x71 ? 2 : put === 0x72 ? 5 : 0)
    if (buffer[at] !== 0x28) return -1
    if (put === 0x71 && buffer[from + 1] !== memo.count) return -1
    if (put === 0x72 && uint32(buffer, from + 1) !== memo.count) return -1
    const begin = ++at
    let hash = 0
    let op = 0
    while (at < limit) {
      op = buffer[at] as number
      if (op === 0x6a) {
        hash = Math.imul(hash ^ int32(buffer, at + 1), 0x9e3779b1)
        at += 5
      } else if (op === 0x68) {
        hash = Math.imul(hash ^ (buffer[at + 1] as number), 0x85ebca6b)
        at += 2
      } else break
      hash ^= hash >>> 15
    }
    if (op !== 0x65 || at >= limit || at === begin) return -1
    let known = this.#find(hash, buffer, begin, at)
    if (known < 0) known = this.#learn(hash, buffer, begin, at)
    if (known < 0) return -1
    if (isPut) memo.add(known, 0)
    this.end = at + 1
    return known
  }

  #find(hash: number, buffer: Uint8Array, from: number, to: number): number {
    const slots = this.#slots
    const mask = slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = (slots[slot] as number) - 1
      if (entry < 0) return -1
      if (this.#hashes[entry] === hash && this.#isSame(entry, buffer, from, to)) return this.#tokens[entry] as number
    }
  }

  #isSame(entry: number, buffer: Uint8Array, from: number, to: number): boolean {
    const begin = this.#froms[entry] as number
    if ((this.#froms[entry + 1] as number) - begin !== to - from) return false
    const bytes = this.#bytes
    for (let i = from, j = begin; i < to; i++, j++) if (buffer[i] !== bytes[j]) return false
    return true
  }

  /** -1: not all of it is frames that are known. */
  #learn(hash: number, buffer: Uint8Array, from: number, to: number): number {
    const frames = this.#frames
    let count = 0
    for (let at = from; at < to; count++) {
      const isLong = buffer[at] === 0x6a
      const index = isLong ? uint32(buffer, at + 1) : (buffer[at + 1] as number)
      if (count === MOST_FRAMES || index >= this.#memo.count) return -1
      const value = this.#memo.get(index)
      if ((value & KIND_MASK) !== FRAME) return -1
      frames[count] = value >>> KIND_BITS
      at += isLong ? 5 : 2
    }
    const made = token(STACK, this.#stacks.intern(frames, 0, count))
    if (this.#count < MOST_LISTS && this.#used + (to - from) <= MOST_BYTES) this.#add(hash, buffer, from, to, made)
    return made
  }

  #add(hash: number, buffer: Uint8Array, from: number, to: number, made: number): void {
    const used = this.#used + (to - from)
    if (used > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, used))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    if (this.#count + 1 >= this.#froms.length) {
      this.#froms = doubled(this.#froms)
      this.#hashes = doubled(this.#hashes)
      this.#tokens = doubled(this.#tokens)
    }
    this.#bytes.set(buffer.subarray(from, to), this.#used)
    const entry = this.#count++
    this.#used = used
    this.#froms[entry + 1] = used
    this.#hashes[entry] = hash
    this.#tokens[entry] = made
    if (this.#count * 2 <= this.#slots.length) this.#place(entry)
    else {
      this.#slots = new Int32Array(this.#slots.length * 2)
      for (let i = 0; i < this.#count; i++) this.#place(i)
    }
  }

  #place(entry: number): void {
    const mask = this.#slots.length - 1
    let slot = (this.#hashes[entry] as number) & mask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = entry + 1
  }
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(array.length * 2)
  grown.set(array)
  return grown
}
