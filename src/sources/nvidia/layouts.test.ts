import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeEvent,
  decodeFabricStateV1,
  decodeFabricStateV2,
  decodeFieldValue,
  decodeMemoryV1,
  decodeMemoryV2,
  decodePciBusId,
  FABRIC_V2_VERSION,
  gpmValue,
  MEMORY_V2_VERSION,
  normalizeBusId,
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

describe('the state of the fabric', () => {
  it('is read behind cluster, status and clique, in both versions', () => {
    const first = Buffer.from(`${'aa'.repeat(16)}01000000${'fe7f0000'}03000000`, 'hex')
    expect(decodeFabricStateV1(first)).toBe(3)
    expect(decodeFabricStateV2(Buffer.concat([Buffer.from('24000002', 'hex'), first, Buffer.alloc(4, 0xff)]))).toBe(3)
    expect(FABRIC_V2_VERSION).toBe(0x02000024)
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
