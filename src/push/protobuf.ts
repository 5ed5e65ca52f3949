/** As much of protobuf's wire format as a remote write needs. */

const UTF8 = new TextEncoder()

/** A message under construction; grows by doubling. */
export class ProtoWriter {
  #bytes = new Uint8Array(1024)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }

  /** Field numbers below 16 only: one byte of tag. */
  string(field: number, text: string): void {
    this.#room(text.length * 3 + 11)
    this.#tag(field, 2)
    const isAscii = this.#ascii(text)
    if (!isAscii) {
      const bytes = UTF8.encode(text)
      this.#varint(bytes.length)
      this.#bytes.set(bytes, this.#length)
      this.#length += bytes.length
    }
  }

  message(field: number, body: Uint8Array): void {
    this.#room(body.length + 11)
    this.#tag(field, 2)
    this.#varint(body.length)
    this.#bytes.set(body, this.#length)
    this.#length += body.length
  }

  double(field: number, value: number): void {
    this.#room(9)
    this.#tag(field, 1)
    this.#view.setFloat64(this.#length, value, true)
    this.#length += 8
  }

  /** Eight bytes as they are: a NaN with a meaning in its payload, which a JavaScript number would not keep. */
  fixed64(field: number, bits: bigint): void {
    this.#room(9)
    this.#tag(field, 1)
    this.#view.setBigUint64(this.#length, bits, true)
    this.#length += 8
  }

  /** A whole number from 0 to 2^53. */
  integer(field: number, value: number): void {
    this.#room(11)
    this.#tag(field, 0)
    this.#varint(value)
  }

  clear(): void {
    this.#length = 0
  }

  #tag(field: number, wireType: number): void {
    this.#bytes[this.#length++] = (field << 3) | wireType
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  /** Length and text in one go; false, with nothing written, when it is not plain ASCII. */
  #ascii(text: string): boolean {
    const start = this.#length
    this.#varint(text.length)
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code > 0x7f) {
        this.#length = start
        return false
      }
      this.#bytes[this.#length++] = code
    }
    return true
  }

  #room(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const bytes = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + more))
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer)
  }
}
