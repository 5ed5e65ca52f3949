/** Numbers as they stand in a buffer, little-endian unless said otherwise. The caller has made sure that the bytes are there. */

export function uint32(buffer: Uint8Array, at: number): number {
  return int32(buffer, at) >>> 0
}

export function int32(buffer: Uint8Array, at: number): number {
  return (
    (buffer[at] as number) | ((buffer[at + 1] as number) << 8) | ((buffer[at + 2] as number) << 16) | ((buffer[at + 3] as number) << 24)
  )
}

export function uint64(buffer: Uint8Array, at: number): number {
  return uint32(buffer, at) + uint32(buffer, at + 4) * 2 ** 32
}

/** Two's complement of any length; beyond 2^53 as near as a double comes, which is exact for addresses. */
export function signed(buffer: Uint8Array, at: number, length: number): number {
  if (length === 0) return 0
  let value = 0
  for (let i = length - 1; i >= 0; i--) value = value * 256 + (buffer[at + i] as number)
  return (buffer[at + length - 1] as number) < 128 ? value : value - 256 ** length
}

const float = new DataView(new ArrayBuffer(8))

/** Big-endian, as pickle writes it. */
export function float64(buffer: Uint8Array, at: number): number {
  for (let i = 0; i < 8; i++) float.setUint8(i, buffer[at + i] as number)
  return float.getFloat64(0)
}
