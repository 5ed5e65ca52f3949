/** Tables as the driver writes them, for tests: of a version, with values at their offsets. */
const SIZES: Readonly<Record<string, number>> = {
  '1.0': 80,
  '1.1': 96,
  '1.2': 104,
  '1.3': 120,
  '1.4': 288,
  '1.5': 360,
  '1.6': 1664,
  '1.7': 2208,
  '1.8': 3872,
  '2.1': 120,
  '2.2': 128,
  '2.3': 152,
  '2.4': 168,
  '3.0': 264,
}

/** A bigint takes 64 bits, a number 32, below offset 16 and at that of the number of partitions 16. */
export function metricsTable(version: string, fields: Readonly<Record<number, number | bigint>> = {}, filler = 0): Buffer {
  const size = SIZES[version] ?? 0
  const table = Buffer.alloc(size, filler)
  table.writeUInt16LE(size, 0)
  const [format, content] = version.split('.').map(Number)
  table.writeUInt8(format ?? 0, 2)
  table.writeUInt8(content ?? 0, 3)
  for (const [offset, value] of Object.entries(fields)) {
    const at = Number(offset)
    if (typeof value === 'bigint') table.writeBigUInt64LE(value, at)
    else if (at < 16 || at === 306 || at === 338) table.writeUInt16LE(value, at)
    else table.writeUInt32LE(value, at)
  }
  return table
}

const TYPE_BYTES = [1, 1, 2, 2, 4, 4, 8, 8]

/** A table of version 1.9: attributes by their number, each with the type of its values (2: 16 bits, 4: 32, 6: 64). */
export function attributeTable(attributes: readonly (readonly [id: number, type: number, values: readonly bigint[]])[]): Buffer {
  const parts = attributes.map(([id, type, values]) => {
    const bytes = TYPE_BYTES[type] ?? 1
    const part = Buffer.alloc(8 + values.length * bytes)
    part.writeUInt32LE(((type << 20) | (id << 10) | values.length) >>> 0, 0)
    for (const [index, value] of values.entries()) {
      const own = Buffer.alloc(8)
      own.writeBigUInt64LE(BigInt.asUintN(64, value))
      own.copy(part, 8 + index * bytes, 0, bytes)
    }
    return part
  })
  const table = Buffer.concat([Buffer.alloc(8), ...parts])
  table.writeUInt16LE(table.length, 0)
  table.writeUInt8(1, 2)
  table.writeUInt8(9, 3)
  table.writeUInt32LE(attributes.length, 4)
  return table
}
