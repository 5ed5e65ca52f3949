// Writes pickles as PyTorch's two writers do: Python's pickle (protocols 2 to 5) and the C++ pickler of torch. Made for tests and benchmarks
// of `gpuwarden snapshot`: lists may be iterables, so that files of any size are written in little memory.

const BUFFER_BYTES = 1 << 20
const FRAME_BYTES = 1 << 16
const BATCH = 1000

/** A tuple; an array is a list. */
export class Tuple {
  constructor(...items) {
    this.items = items
  }
}

/** A value that is written once and referred to afterwards; everything else is written anew each time. */
export class Shared {
  constructor(value) {
    this.value = value
  }
}

/** An integer that a double cannot hold, or a float that has no fraction. */
export class Float {
  constructor(value) {
    this.value = value
  }
}

export class PickleWriter {
  #sink
  #isCpp
  #protocol
  #buffer = Buffer.alloc(BUFFER_BYTES)
  #used = 0
  #memo = 0
  #shared = new Map()
  #texts = new Map()
  /** Bytes that the sink was given. */
  written = 0

  /** `sink`: takes buffers, which are valid during the call. `writer`: 'python' or 'cpp'. */
  constructor(sink, { writer = 'python', protocol = writer === 'cpp' ? 2 : 4 } = {}) {
    this.#sink = sink
    this.#isCpp = writer === 'cpp'
    this.#protocol = protocol
    this.#give(Buffer.from([0x80, protocol]))
  }

  static bytes(value, options) {
    const parts = []
    const writer = new PickleWriter((bytes) => parts.push(Buffer.from(bytes)), options)
    writer.write(value)
    return Buffer.concat(parts)
  }

  write(value) {
    this.#value(value)
    this.#byte(0x2e)
    this.#flush()
  }

  #value(value) {
    if (typeof value === 'string') this.#text(value)
    else if (typeof value === 'number' || typeof value === 'bigint') this.#number(value)
    else if (value === null || value === undefined) this.#byte(0x4e)
    else if (typeof value === 'boolean') this.#byte(value ? 0x88 : 0x89)
    else if (value instanceof Shared) this.#reference(value)
    else if (value instanceof Tuple) this.#tuple(value)
    else if (value instanceof Float) this.#float(value.value)
    else if (typeof value[Symbol.iterator] === 'function') this.#list(value)
    else this.#dict(value)
    if (this.#used >= FRAME_BYTES) this.#flush()
  }

  #reference(shared) {
    const known = this.#shared.get(shared)
    if (known !== undefined) {
      this.#get(known)
      return
    }
    // Python puts a container into the memo before it is filled, C++ afterwards.
    if (!this.#isCpp) this.#shared.set(shared, this.#memo)
    this.#value(shared.value)
    if (this.#isCpp) {
      this.#shared.set(shared, this.#memo)
      this.#put()
    }
  }

  #text(text) {
    const bytes = Buffer.from(text)
    const key = this.#isCpp ? text : null
    if (key !== null && this.#texts.has(key)) {
      this.#get(this.#texts.get(key))
      return
    }
    if (this.#protocol >= 4 && bytes.length < 256) this.#bytes(0x8c, bytes.length)
    else this.#bytes(0x58, bytes.length & 255, (bytes.length >>> 8) & 255, (bytes.length >>> 16) & 255, bytes.length >>> 24)
    this.#raw(bytes)
    if (key !== null) this.#texts.set(key, this.#memo)
    this.#put()
  }

  #number(value) {
    if (typeof value === 'number' && !Number.isInteger(value)) this.#float(value)
    else if (value >= 0 && value < 256) this.#bytes(0x4b, Number(value))
    else if (value >= 0 && value < 65_536) this.#bytes(0x4d, Number(value) & 255, Number(value) >>> 8)
    else if (value >= -(2 ** 31) && value < 2 ** 31) {
      const number = Number(value)
      this.#bytes(0x4a, number & 255, (number >>> 8) & 255, (number >>> 16) & 255, (number >>> 24) & 255)
    } else this.#long(BigInt(value))
  }

  #long(value) {
    const bytes = []
    let rest = value
    do {
      bytes.push(Number(rest & 255n))
      rest >>= 8n
    } while (this.#isCpp ? bytes.length < 8 : !((rest === 0n && bytes.at(-1) < 128) || (rest === -1n && bytes.at(-1) >= 128)))
    this.#bytes(0x8a, bytes.length, ...bytes)
  }

  #float(value) {
    const bytes = Buffer.alloc(9)
    bytes[0] = 0x47
    bytes.writeDoubleBE(value, 1)
    this.#raw(bytes)
  }

  #tuple({ items }) {
    if (items.length > 3) this.#byte(0x28)
    for (const item of items) this.#value(item)
    this.#byte(items.length > 3 ? 0x74 : [0x29, 0x85, 0x86, 0x87][items.length])
    if (!this.#isCpp && items.length > 0) this.#put()
  }

  #list(items) {
    this.#byte(0x5d)
    if (this.#isCpp) {
      this.#byte(0x28)
      for (const item of items) this.#value(item)
      this.#byte(0x65)
      return
    }
    this.#put()
    let held = null
    let count = 0
    // One item alone is appended without a MARK, as Python does for the last batch too.
    for (const item of items) {
      if (count % BATCH === 0) {
        if (held !== null) this.#single(held)
        if (count > 0 && held === null) this.#byte(0x65)
        held = { item }
      } else {
        if (held !== null) {
          this.#byte(0x28)
          this.#value(held.item)
          held = null
        }
        this.#value(item)
      }
      count++
    }
    if (held !== null) this.#single(held)
    else if (count > 0) this.#byte(0x65)
  }

  #single({ item }) {
    this.#value(item)
    this.#byte(0x61)
  }

  #dict(value) {
    const keys = Object.keys(value)
    this.#byte(0x7d)
    if (!this.#isCpp) this.#put()
    if (keys.length === 0 && !this.#isCpp) return
    const isOne = keys.length === 1 && !this.#isCpp
    if (!isOne) this.#byte(0x28)
    for (const key of keys) {
      this.#key(key)
      this.#value(value[key])
    }
    this.#byte(isOne ? 0x73 : 0x75)
  }

  /** Python's dicts share their keys: each is one object. */
  #key(key) {
    const known = this.#texts.get(key)
    if (known !== undefined) this.#get(known)
    else if (this.#isCpp) this.#text(key)
    else {
      this.#texts.set(key, this.#memo)
      this.#text(key)
    }
  }

  #put() {
    const index = this.#memo++
    if (this.#protocol >= 4) this.#byte(0x94)
    else if (index < 256) this.#bytes(0x71, index)
    else this.#bytes(0x72, index & 255, (index >>> 8) & 255, (index >>> 16) & 255, index >>> 24)
  }

  /** Half of a file is this. */
  #get(index) {
    if (this.#used + 5 > BUFFER_BYTES) this.#flush()
    const buffer = this.#buffer
    if (index < 256) {
      buffer[this.#used] = 0x68
      buffer[this.#used + 1] = index
      this.#used += 2
      return
    }
    buffer[this.#used] = 0x6a
    buffer.writeUInt32LE(index, this.#used + 1)
    this.#used += 5
  }

  #byte(value) {
    if (this.#used === BUFFER_BYTES) this.#flush()
    this.#buffer[this.#used++] = value
  }

  #bytes(...values) {
    for (const value of values) this.#byte(value)
  }

  #raw(bytes) {
    if (this.#used + bytes.length > BUFFER_BYTES) this.#flush()
    bytes.copy(this.#buffer, this.#used)
    this.#used += bytes.length
  }

  #flush() {
    if (this.#used === 0) return
    if (this.#protocol >= 4) {
      const head = Buffer.alloc(9)
      head[0] = 0x95
      head.writeBigUInt64LE(BigInt(this.#used), 1)
      this.#give(head)
    }
    this.#give(this.#buffer.subarray(0, this.#used))
    this.#used = 0
  }

  #give(bytes) {
    this.#sink(bytes)
    this.written += bytes.length
  }
}
