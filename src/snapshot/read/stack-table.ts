/** Frames and stacks by id, each kept once by value. */

/** The event or block has no `frames` at all. */
export const NO_STACK = 0
/** It has an empty list of them. */
export const EMPTY_STACK = 1

export class FrameTable {
  /** Ids of texts, and lines, by frame. */
  readonly names: number[] = []
  readonly files: number[] = []
  readonly lines: number[] = []
  readonly #ids = new Map<string, number>()

  get count(): number {
    return this.names.length
  }

  intern(name: number, file: number, line: number): number {
    const key = `${name} ${file} ${line}`
    const known = this.#ids.get(key)
    if (known !== undefined) return known
    const id = this.names.length
    this.#ids.set(key, id)
    this.names.push(name)
    this.files.push(file)
    this.lines.push(line)
    return id
  }
}

export class StackTable {
  /** Ids of frames, innermost first, one stack after the other. */
  #frames = new Int32Array(1 << 12)
  #ends: number[] = [0, 0]
  #byHash = new Map<number, number[]>()

  get count(): number {
    return this.#ends.length
  }

  /** How many frames all stacks together have. */
  get size(): number {
    return this.#ends.at(-1) ?? 0
  }

  intern(frames: Int32Array, from: number, to: number): number {
    if (from === to) return EMPTY_STACK
    let hash = to - from
    for (let i = from; i < to; i++) hash = Math.imul(hash ^ (frames[i] as number), 0x01000193) ^ (hash >>> 13)
    const same = this.#byHash.get(hash)
    for (const id of same ?? []) if (this.#isSame(id, frames, from, to)) return id
    const begin = this.size
    const end = begin + (to - from)
    if (end > this.#frames.length) {
      const grown = new Int32Array(Math.max(this.#frames.length * 2, end))
      grown.set(this.#frames)
      this.#frames = grown
    }
    this.#frames.set(frames.subarray(from, to), begin)
    const id = this.#ends.length
    this.#ends.push(end)
    if (same) same.push(id)
    else this.#byHash.set(hash, [id])
    return id
  }

  /** Ids of its frames, innermost first. */
  frames(id: number): Int32Array {
    return this.#frames.subarray(id === 0 ? 0 : this.#ends[id - 1], this.#ends[id])
  }

  #isSame(id: number, frames: Int32Array, from: number, to: number): boolean {
    const begin = this.#ends[id - 1] as number
    if ((this.#ends[id] as number) - begin !== to - from) return false
    for (let i = from, j = begin; i < to; i++, j++) if (frames[i] !== this.#frames[j]) return false
    return true
  }
}
