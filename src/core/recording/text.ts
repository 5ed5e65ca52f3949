/** Text files as UTF-8: Windows tools write UTF-16, and byte order marks. */
const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const HEAD_BYTES = 4

/** Removes the byte order mark and converts UTF-16; the first bytes decide. */
export async function* asUtf8(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0)
  let decoder: InstanceType<typeof TextDecoder> | null = null
  for await (const bytes of blocks) {
    let block: Buffer = bytes
    if (head !== null) {
      block = head.length === 0 ? bytes : Buffer.concat([head, bytes])
      if (block.length < HEAD_BYTES) {
        head = Buffer.from(block)
        continue
      }
      head = null
      const encoding = utf16Of(block)
      if (encoding !== null) decoder = new TextDecoder(encoding)
      else if (block.subarray(0, UTF8_MARK.length).equals(UTF8_MARK)) block = block.subarray(UTF8_MARK.length)
    }
    yield decoder === null ? block : Buffer.from(decoder.decode(block, { stream: true }))
  }
  if (head !== null && head.length > 0) yield head
}

export function textOf(bytes: Buffer): string {
  const encoding = utf16Of(bytes)
  return (encoding === null ? bytes.toString() : new TextDecoder(encoding).decode(bytes)).replace(/^\ufeff/, '')
}

/** By its mark; without one, by ASCII characters whose other halves are 0. */
function utf16Of(bytes: Buffer): 'utf-16le' | 'utf-16be' | null {
  const [first = 0, second = 0, third = 0, fourth = 1] = bytes
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0 && third !== 0 && fourth === 0)) return 'utf-16le'
  return (first === 0xfe && second === 0xff) || (first === 0 && second !== 0 && third === 0 && fourth !== 0) ? 'utf-16be' : null
}
