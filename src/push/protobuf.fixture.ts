/** Reads a remote write request back, for tests. */
export interface ReadSeries {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** The eight bytes of the value. */
  readonly bits: bigint
  readonly timestamp: number
}

export function readWriteRequest(bytes: Uint8Array): ReadSeries[] {
  return fields(bytes).map(({ field, body }) => {
    if (field !== 1 || !(body instanceof Uint8Array)) throw new Error(`unexpected field ${field}`)
    return readSeries(body)
  })
}

function readSeries(bytes: Uint8Array): ReadSeries {
  const labels: Record<string, string> = {}
  let previous = ''
  let sample: Field[] = []
  for (const { field, body } of fields(bytes)) {
    if (!(body instanceof Uint8Array)) throw new Error(`unexpected field ${field}`)
    if (field === 2) sample = fields(body)
    else {
      const [name = '', value = ''] = fields(body).map((part) => new TextDecoder().decode(part.body as Uint8Array))
      if (name <= previous) throw new Error(`labels are not sorted: ${previous}, ${name}`)
      previous = name
      labels[name] = value
    }
  }
  const double = sample.find(({ field }) => field === 1)?.body as bigint
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, double)
  return { labels, value: view.getFloat64(0), bits: double, timestamp: Number(sample.find(({ field }) => field === 2)?.body) }
}

interface Field {
  readonly field: number
  readonly body: Uint8Array | bigint
}

function fields(bytes: Uint8Array): Field[] {
  const found: Field[] = []
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = view.getUint8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const type = tag & 7
    if (type === 0) found.push({ field: tag >> 3, body: varint() })
    else if (type === 1) {
      found.push({ field: tag >> 3, body: view.getBigUint64(at, true) })
      at += 8
    } else if (type === 2) {
      const length = Number(varint())
      found.push({ field: tag >> 3, body: bytes.subarray(at, at + length) })
      at += length
    } else throw new Error(`unexpected wire type ${type}`)
  }
  return found
}
