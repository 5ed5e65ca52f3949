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

export interface Fabric {
  /** NVML's numbers: 0 none, 1 not started, 2 in progress, 3 completed. */
  readonly state: number
  /** 1 healthy, 2 unhealthy, 3 limited capacity; null: not known. */
  readonly health: number | null
  readonly cliqueId: number
  readonly clusterId: string | null
}

/** nvmlGpuFabricInfo_t: cluster (16 bytes), status, clique, state. The later ones begin with a version and end with a mask, then a summary of the health. */
export const FABRIC_BYTES = 40
export const FABRIC_V2_VERSION = 36 | (2 << 24)
export const FABRIC_V3_VERSION = FABRIC_BYTES | (3 << 24)

export function decodeFabricV1(bytes: Buffer, offset = 0, health: number | null = null): Fabric {
  const cluster = bytes.toString('hex', offset, offset + 16)
  return {
    state: bytes.readUInt8(offset + 24),
    health,
    cliqueId: bytes.readUInt32LE(offset + 20),
    clusterId: /^0+$/.test(cluster) ? null : cluster.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  }
}

export function decodeFabricV2(bytes: Buffer): Fabric {
  return decodeFabricV1(bytes, 4, healthOfMask(bytes.readUInt32LE(32)))
}

export function decodeFabricV3(bytes: Buffer): Fabric {
  return decodeFabricV1(bytes, 4, bytes.readUInt8(36) || healthOfMask(bytes.readUInt32LE(32)))
}

/** Two bits each for bandwidth, route recovery, route and access: 1 bad, 2 good, 0 not told. Then four for the configuration: 1 good, more is bad. */
function healthOfMask(mask: number): number | null {
  const parts = [mask & 3, (mask >> 2) & 3, (mask >> 4) & 3, (mask >> 6) & 3]
  const configuration = (mask >> 8) & 15
  if (parts.includes(1) || configuration > 1) return 2
  return parts.includes(2) || configuration === 1 ? 1 : null
}

export const MARGIN_VERSION = 8 | (1 << 24)
export const REPAIR_VERSION = 12 | (1 << 24)

/** nvmlPlatformInfo_v2_t: version, InfiniBand GUID and chassis (16 bytes each), then a byte for each number. */
export const PLATFORM_VERSION = 44 | (2 << 24)

/** null without a chassis: a card that is in no rack answers with zeros. */
export function decodePlatform(bytes: Buffer) {
  const chassisSerial = readText(bytes, 20, 16)
  if (chassisSerial === null) return null
  return {
    chassisSerial,
    slot: readPlace(bytes, 36),
    tray: readPlace(bytes, 37),
    host: readPlace(bytes, 38),
    module: readPlace(bytes, 40),
  }
}

/** All ones is "not known". */
function readPlace(bytes: Buffer, offset: number): number | null {
  const value = bytes.readUInt8(offset)
  return value === 0xff ? null : value
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
