import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeEvent,
  decodeFabricV1,
  decodeFabricV2,
  decodeFabricV3,
  decodeFieldValue,
  decodeMemoryV1,
  decodeMemoryV2,
  decodePciBusId,
  decodePlatform,
  FABRIC_V2_VERSION,
  FABRIC_V3_VERSION,
  gpmValue,
  MEMORY_V2_VERSION,
  normalizeBusId,
  PLATFORM_VERSION,
  readUint64,
} from './layouts.ts'

const anyBytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Buffer.from(bytes))

function words(...values: readonly bigint[]): Buffer {
  const buffer = Buffer.alloc(values.length * 8)
  for (const [position, value] of values.entries()) buffer.writeBigUInt64LE(value, position * 8)
  return buffer
}

describe('numbers', () => {
  it('takes all ones for "not available", and nothing else', () => {
    expect(readUint64(words(2n ** 64n - 1n), 0)).toBe(null)
    expect(readUint64(words(2n ** 64n - 2n), 0)).toBe(2 ** 64)
    expect(readUint64(words(0n), 0)).toBe(0)
    fc.assert(fc.property(fc.bigInt(0n, 2n ** 53n), (value) => readUint64(words(value), 0) === Number(value)))
  })
})

describe('memory', () => {
  it('reads both versions at their offsets', () => {
    expect(decodeMemoryV1(words(100n, 60n, 40n))).toEqual({ totalBytes: 100, freeBytes: 60, usedBytes: 40, reservedBytes: null })
    expect(decodeMemoryV2(words(0n, 100n, 5n, 60n, 35n))).toEqual({ totalBytes: 100, freeBytes: 60, usedBytes: 35, reservedBytes: 5 })
    expect(MEMORY_V2_VERSION).toBe(33_554_472)
  })

  it('never throws and never gives more used than there is', () => {
    fc.assert(
      fc.property(anyBytes(40), (bytes) => {
        for (const memory of [decodeMemoryV1(bytes), decodeMemoryV2(bytes)])
          expect(memory === null || memory.usedBytes <= memory.totalBytes).toBe(true)
      }),
    )
  })
})

describe('the fabric', () => {
  const first = Buffer.from(`${'aa'.repeat(16)}01000000${'fe7f0000'}03ffffff`, 'hex')
  const cluster = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa'
  const later = (...end: readonly number[]) => Buffer.concat([Buffer.from('24000002', 'hex'), first, Buffer.from(end)])

  it('is read in every version; the state is one byte', () => {
    expect(decodeFabricV1(first)).toEqual({ state: 3, health: null, cliqueId: 0x7ffe, clusterId: cluster })
    expect(decodeFabricV2(later(0, 0, 0, 0))).toEqual({ state: 3, health: null, cliqueId: 0x7ffe, clusterId: cluster })
    expect(decodeFabricV3(later(0, 0, 0, 0, 3, 0xff))).toMatchObject({ state: 3, health: 3, cliqueId: 0x7ffe })
    expect([FABRIC_V2_VERSION, FABRIC_V3_VERSION]).toEqual([0x02000024, 0x03000028])
    expect(decodeFabricV1(Buffer.alloc(28)).clusterId).toBe(null)
  })

  it.each([
    ['all that is reported is good', 0b0001_10_10_10_10, 1],
    ['the bandwidth is degraded', 0b0001_10_10_10_01, 2],
    ['a route is unhealthy', 0b0001_10_01_10_10, 2],
    ['the configuration is wrong', 0b0011_10_10_10_10, 2],
    ['nothing is reported', 0, null],
  ])('is judged by the mask where there is no summary: %s', (_, mask, health) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(mask, 0)
    expect(decodeFabricV2(later(...bytes)).health).toBe(health)
    expect(decodeFabricV3(later(...bytes, 0)).health).toBe(health)
  })
})

describe('the platform', () => {
  it('is a chassis and a byte for each place; all ones is unknown', () => {
    const bytes = Buffer.concat([Buffer.alloc(20, 0xfa), Buffer.from('1821325191344\0\0\0'), Buffer.from([1, 2, 255, 9, 4, 0, 0, 0])])
    expect(decodePlatform(bytes)).toEqual({ chassisSerial: '1821325191344', slot: 1, tray: 2, host: null, module: 4 })
    expect(PLATFORM_VERSION).toBe(0x0200002c)
    // As an H200 in a virtual machine answers.
    expect(decodePlatform(Buffer.from(`2c000002${'00'.repeat(34)}010008000000`, 'hex'))).toBe(null)
  })
})

describe('field values', () => {
  const field = (type: number, write: (buffer: Buffer) => void) => {
    const buffer = Buffer.alloc(40)
    buffer.writeUInt32LE(type, 24)
    write(buffer)
    return decodeFieldValue(buffer, 0)
  }

  it('reads each type', () => {
    expect(field(0, (buffer) => buffer.writeDoubleLE(1.5, 32))).toBe(1.5)
    expect(field(0, (buffer) => buffer.writeDoubleLE(Number.NaN, 32))).toBe(null)
    expect(field(1, (buffer) => buffer.writeUInt32LE(7, 32))).toBe(7)
    expect(field(2, (buffer) => buffer.writeBigUInt64LE(2n ** 40n, 32))).toBe(2 ** 40)
    expect(field(3, (buffer) => buffer.writeBigUInt64LE(2n ** 64n - 1n, 32))).toBe(null)
    expect(field(4, (buffer) => buffer.writeBigInt64LE(-5n, 32))).toBe(-5)
    expect(field(5, (buffer) => buffer.writeInt32LE(-8, 32))).toBe(-8)
    expect(field(9, (buffer) => buffer.writeInt32LE(1, 32))).toBe(null)
  })

  it('gives a finite number or null for any bytes', () => {
    fc.assert(
      fc.property(anyBytes(40), (bytes) => {
        const value = decodeFieldValue(bytes, 0)
        expect(value === null || Number.isFinite(value)).toBe(true)
      }),
    )
  })
})

describe('addresses', () => {
  it('come in one spelling', () => {
    expect(normalizeBusId('0000:8d:00.0')).toBe('00000000:8D:00.0')
    expect(normalizeBusId('0000:3b:00')).toBe('00000000:3B:00.0')
    expect(normalizeBusId('00000000:8D:00.0')).toBe('00000000:8D:00.0')
    expect(normalizeBusId('pci0000:00')).toBe(null)
  })

  it('fall back to the legacy text', () => {
    const bytes = Buffer.alloc(68)
    bytes.write('0000:0A:00.0', 0)
    expect(decodePciBusId(bytes)).toBe('00000000:0A:00.0')
    bytes.write('00000001:0B:00.0', 36)
    expect(decodePciBusId(bytes)).toBe('00000001:0B:00.0')
  })

  it('never throw', () => {
    fc.assert(
      fc.property(anyBytes(68), (bytes) => {
        decodePciBusId(bytes)
        decodeEvent(bytes)
        const value = gpmValue(bytes, 0)
        expect(value === null || (Number.isFinite(value) && value >= 0)).toBe(true)
      }),
    )
  })
})
