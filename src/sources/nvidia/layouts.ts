/** Pure decoders of NVML's structures (64-bit Linux, little endian). They never throw on what a driver wrote. */

const TWO_32 = 0x1_0000_0000
const ALL_ONES = 0xffff_ffff

/** All ones is "not available". The halves are compared before converting, because 2^64−1 is no exact number. */
export function readUint64(bytes: Buffer, offset: number): number | null {
  const low = bytes.readUInt32LE(offset)
  const high = bytes.readUInt32LE(offset + 4)
  return low === ALL_ONES && high === ALL_ONES ? null : high * TWO_32 + low
}

export function readUint32(bytes: Buffer, offset: number): number | null {
  const value = bytes.readUInt32LE(offset)
  return value === ALL_ONES ? null : value
}

/** Text up to the first NUL; null when empty. */
export function readText(bytes: Buffer, offset: number, room: number): string | null {
  const end = bytes.indexOf(0, offset)
  const text = bytes.toString('utf8', offset, end === -1 || end > offset + room ? offset + room : end).trim()
  return text === '' ? null : text
}

export interface Memory {
  readonly totalBytes: number
  readonly freeBytes: number
  readonly usedBytes: number
  readonly reservedBytes: number | null
}

export const MEMORY_V2_BYTES = 40
export const MEMORY_V2_VERSION = MEMORY_V2_BYTES | (2 << 24)

/** null when the figures contradict each other or are not there. `used` includes the driver's reserve. */
export function decodeMemoryV1(bytes: Buffer): Memory | null {
  return memoryOf(readUint64(bytes, 0), readUint64(bytes, 8), readUint64(bytes, 16), null)
}

export function decodeMemoryV2(bytes: Buffer): Memory | null {
  const reserved = readUint64(bytes, 16)
  return reserved === null ? null : memoryOf(readUint64(bytes, 8), readUint64(bytes, 24), readUint64(bytes, 32), reserved)
}

function memoryOf(total: number | null, free: number | null, used: number | null, reservedBytes: number | null): Memory | null {
  if (total === null || free === null || used === null || used > total || free > total) return null
  return { totalBytes: total, freeBytes: free, usedBytes: used, reservedBytes }
}

/** nvmlGpuFabricInfo_v2_t: version, cluster (16 bytes), status, clique, state, health. */
export const FABRIC_V2_BYTES = 36
export const FABRIC_V2_VERSION = FABRIC_V2_BYTES | (2 << 24)

/** nvmlGpuFabricInfo_t has neither version nor health. */
export function decodeFabricStateV1(bytes: Buffer): number {
  return bytes.readUInt32LE(24)
}

export function decodeFabricStateV2(bytes: Buffer): number {
  return bytes.readUInt32LE(28)
}

export const PCI_INFO_BYTES = 68

/** `00000000:8D:00.0`, from the busId text, else from the legacy one. */
export function decodePciBusId(bytes: Buffer): string | null {
  return normalizeBusId(readText(bytes, 36, 32) ?? '') ?? normalizeBusId(readText(bytes, 0, 16) ?? '')
}

/** Any way of writing a PCI address (`0000:8d:00.0`, `0000:8D:00`) in NVML's way; null when it is none. */
export function normalizeBusId(text: string): string | null {
  const match = /^([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-9a-f]))?$/i.exec(text)
  if (!match) return null
  const [, domain = '', bus = '', device = '', part = '0'] = match
  return `${domain.padStart(8, '0')}:${bus}:${device}.${part}`.toUpperCase()
}

export const FIELD_VALUE_BYTES = 40

export function fieldReturn(bytes: Buffer, offset: number): number {
  return bytes.readInt32LE(offset + 28)
}

/** The value of a nvmlFieldValue_t by its own type; null for a type this program does not know, NaN, or all ones. */
export function decodeFieldValue(bytes: Buffer, offset: number): number | null {
  const at = offset + 32
  switch (bytes.readUInt32LE(offset + 24)) {
    case 0: {
      const value = bytes.readDoubleLE(at)
      return Number.isFinite(value) ? value : null
    }
    case 1:
      return readUint32(bytes, at)
    case 2:
    case 3:
      return readUint64(bytes, at)
    case 4:
      return bytes.readInt32LE(at + 4) * TWO_32 + bytes.readUInt32LE(at)
    case 5:
      return bytes.readInt32LE(at)
    default:
      return null
  }
}

export const EVENT_BYTES = 32

export interface DriverEvent {
  readonly handle: bigint
  readonly type: number
  readonly data: number | null
}

export function decodeEvent(bytes: Buffer): DriverEvent {
  return { handle: bytes.readBigUInt64LE(0), type: readUint64(bytes, 8) ?? 0, data: readUint64(bytes, 16) }
}

export const GPM_METRIC_BYTES = 40
export const GPM_HEADER_BYTES = 24

export function gpmReturn(bytes: Buffer, position: number): number {
  return bytes.readInt32LE(GPM_HEADER_BYTES + position * GPM_METRIC_BYTES + 4)
}

export function gpmValue(bytes: Buffer, position: number): number | null {
  const value = bytes.readDoubleLE(GPM_HEADER_BYTES + position * GPM_METRIC_BYTES + 8)
  return Number.isFinite(value) && value >= 0 ? value : null
}
