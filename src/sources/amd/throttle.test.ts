import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isApuTable, parseClockEventReasons, parseMetricsHeader } from './throttle.ts'

function table(throttlers: bigint, format = 1, content = 3, size = 120): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUInt16LE(size, 0)
  bytes.writeUInt8(format, 2)
  bytes.writeUInt8(content, 3)
  if (size >= 120) bytes.writeBigUInt64LE(throttlers, 112)
  return bytes
}

describe('gpu_metrics', () => {
  it('maps throttlers onto the bits of NVML', () => {
    expect(parseClockEventReasons(table(0n))).toBe(0)
    expect(parseClockEventReasons(table(1n << 2n))).toBe(0x4)
    expect(parseClockEventReasons(table(1n << 16n))).toBe(0x8)
    expect(parseClockEventReasons(table(1n << 31n))).toBe(0x8)
    expect(parseClockEventReasons(table(1n << 36n))).toBe(0x20)
    expect(parseClockEventReasons(table(1n << 47n))).toBe(0x48)
    expect(parseClockEventReasons(table((1n << 0n) | (1n << 36n)))).toBe(0x24)
  })

  it('says nothing about tables it does not know', () => {
    expect(parseClockEventReasons(table(1n, 1, 1, 96))).toBe(null)
    expect(parseClockEventReasons(table(1n, 2, 3, 128))).toBe(null)
    expect(parseClockEventReasons(table(0xffffffffffffffffn))).toBe(null)
    expect(parseClockEventReasons(table(1n).subarray(0, 100))).toBe(null)
    expect(parseMetricsHeader(Buffer.alloc(0))).toBe(null)
  })

  it('recognizes an APU by the format', () => {
    const header = (format: number) => parseMetricsHeader(table(0n, format)) ?? { format: 0, content: 0 }
    expect([1, 2, 3].map((format) => isApuTable(header(format)))).toEqual([false, true, true])
  })

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const reasons = parseClockEventReasons(Buffer.from(bytes))
        return reasons === null || (reasons & ~0x6c) === 0
      }),
    )
  })
})
