/** Numbers (addresses, streams) by id, each kept once: an id takes four bytes where the number takes eight, and ids can index arrays. */
export class NumberTable {
  #values = new Float64Array(1 << 8)
  /** Open addressing: id + 1, or 0. */
  #slots = new Int32Array(1 << 9)
  count = 0

  intern(value: number): number {
    const mask = this.#slots.length - 1
    let slot = hashOf(value) & mask
    for (;;) {
      const id = (this.#slots[slot] as number) - 1
      if (id < 0) break
      if (this.#values[id] === value) return id
      slot = (slot + 1) & mask
    }
    if (this.count === this.#values.length) {
      const grown = new Float64Array(this.#values.length * 2)
      grown.set(this.#values)
      this.#values = grown
    }
    const id = this.count++
    this.#values[id] = value
    this.#slots[slot] = id + 1
    if (this.count * 2 > this.#slots.length) this.#rehash()
    return id
  }

  /** -1: not there. */
  find(value: number): number {
    const mask = this.#slots.length - 1
    let slot = hashOf(value) & mask
    for (;;) {
      const id = (this.#slots[slot] as number) - 1
      if (id < 0 || this.#values[id] === value) return id
      slot = (slot + 1) & mask
    }
  }

  value(id: number): number {
    return this.#values[id] as number
  }

  #rehash(): void {
    const slots = new Int32Array(this.#slots.length * 2)
    const mask = slots.length - 1
    for (let id = 0; id < this.count; id++) {
      let slot = hashOf(this.#values[id] as number) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = id + 1
    }
    this.#slots = slots
  }
}

/** Addresses are multiples of 512, in ranges far apart: both halves count. */
function hashOf(value: number): number {
  const hash = Math.imul((value / 512) | 0, 0x9e3779b1) ^ Math.imul((value / 2 ** 41) | 0, 0x85ebca6b) ^ (value | 0)
  return hash ^ (hash >>> 16)
}
