/** Snappy's block format, compressing only: https://github.com/google/snappy/blob/main/format_description.txt */

const BLOCK = 1 << 16
const HASH_BITS = 14
const SHORTEST_MATCH = 4
const LONGEST_COPY = 64

export function snappy(input: Uint8Array): Uint8Array {
  // The worst case of the format: a tag for every 60 bytes and the length in front.
  const output = new Uint8Array(32 + input.length + Math.ceil(input.length / 6))
  let end = writeLength(output, input.length)
  const table = new Int32Array(1 << HASH_BITS)
  for (let start = 0; start < input.length; start += BLOCK)
    end = compressBlock(input, start, Math.min(start + BLOCK, input.length), output, end, table.fill(-1))
  return output.slice(0, end)
}

function writeLength(output: Uint8Array, length: number): number {
  let at = 0
  let rest = length
  while (rest >= 0x80) {
    output[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  output[at++] = rest
  return at
}

/** Greedy: at each position the last place where the same four bytes were, if within this block. */
function compressBlock(input: Uint8Array, start: number, stop: number, output: Uint8Array, from: number, table: Int32Array): number {
  let end = from
  let literal = start
  let at = start
  while (at + SHORTEST_MATCH <= stop) {
    const word = wordAt(input, at)
    const slot = Math.imul(word, 0x1e35a7bd) >>> (32 - HASH_BITS)
    const candidate = table[slot] ?? -1
    table[slot] = at
    if (candidate < 0 || wordAt(input, candidate) !== word) {
      at++
      continue
    }
    end = writeLiteral(input, literal, at, output, end)
    let length = SHORTEST_MATCH
    while (at + length < stop && input[candidate + length] === input[at + length]) length++
    end = writeCopy(at - candidate, length, output, end)
    at += length
    literal = at
  }
  return writeLiteral(input, literal, stop, output, end)
}

function wordAt(input: Uint8Array, at: number): number {
  return (input[at] ?? 0) | ((input[at + 1] ?? 0) << 8) | ((input[at + 2] ?? 0) << 16) | ((input[at + 3] ?? 0) << 24)
}

function writeLiteral(input: Uint8Array, from: number, to: number, output: Uint8Array, at: number): number {
  const length = to - from
  if (length === 0) return at
  let end = at
  const stored = length - 1
  if (stored < 60) output[end++] = stored << 2
  else if (stored < 256) {
    output[end++] = 60 << 2
    output[end++] = stored
  } else {
    output[end++] = 61 << 2
    output[end++] = stored & 0xff
    output[end++] = stored >>> 8
  }
  output.set(input.subarray(from, to), end)
  return end + length
}

/** Copies with a two-byte offset, which reaches over a whole block. */
function writeCopy(offset: number, length: number, output: Uint8Array, at: number): number {
  let end = at
  let rest = length
  while (rest > 0) {
    const part = Math.min(rest, LONGEST_COPY)
    output[end++] = ((part - 1) << 2) | 2
    output[end++] = offset & 0xff
    output[end++] = offset >>> 8
    rest -= part
  }
  return end
}
