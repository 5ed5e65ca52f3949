/** The other direction, for tests: reads Snappy's block format and throws at anything that is not in it. */
export function unsnappy(input: Uint8Array): Uint8Array {
  let at = 0
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = input[at++] ?? fail('length')
    length += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  const output = new Uint8Array(length)
  let end = 0
  while (at < input.length) {
    const tag = input[at++] ?? fail('tag')
    if ((tag & 3) === 0) {
      let size = tag >> 2
      if (size >= 60) {
        const bytes = size - 59
        size = 0
        for (let byte = 0; byte < bytes; byte++) size += (input[at++] ?? fail('literal')) * 2 ** (8 * byte)
      }
      size++
      if (at + size > input.length || end + size > length) fail('literal')
      output.set(input.subarray(at, at + size), end)
      at += size
      end += size
    } else if ((tag & 3) === 2) {
      const offset = (input[at] ?? fail('offset')) | ((input[at + 1] ?? fail('offset')) << 8)
      at += 2
      if (offset === 0 || offset > end) fail('offset')
      for (let left = (tag >> 2) + 1; left > 0; left--) output[end] = output[end++ - offset] ?? 0
    } else fail(`tag ${tag & 3}`)
  }
  if (end !== length) fail('length')
  return output
}

function fail(what: string): never {
  throw new Error(`not Snappy's block format: bad ${what}`)
}
