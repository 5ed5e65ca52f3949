import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type DriverProcess, decodeProcesses, decodeUtilizationSample, fillSentinel, inferStride, MAX_STRIDE } from './process-layout.ts'

const NOT_AVAILABLE = 2n ** 64n - 1n

interface Entry {
  readonly pid: number
  readonly memory: bigint
  readonly instance: number
}

/** As a driver with this stride writes; what it does not write keeps the sentinel. */
function written(stride: number, entries: readonly Entry[], room: number, zeroed = false): Buffer {
  const bytes = Buffer.alloc(room * MAX_STRIDE)
  fillSentinel(bytes, bytes.length)
  if (zeroed) bytes.fill(0, 0, room * stride)
  for (const [position, { pid, memory, instance }] of entries.entries()) {
    const offset = position * stride
    bytes.writeUInt32LE(pid, offset)
    bytes.writeBigUInt64LE(memory, offset + 8)
    if (stride >= 24) {
      bytes.writeUInt32LE(instance, offset + 16)
      bytes.writeUInt32LE(instance, offset + 20)
    }
    if (stride >= 32) bytes.writeBigUInt64LE(0n, offset + 24)
  }
  return bytes
}

const entry: fc.Arbitrary<Entry> = fc.record({
  pid: fc.integer({ min: 1, max: 4_194_304 }),
  memory: fc.oneof(fc.constant(NOT_AVAILABLE), fc.bigInt(0n, 2n ** 40n)),
  instance: fc.constantFrom(0xffffffff, 0, 3),
})
const entries = fc.array(entry, { minLength: 1, maxLength: 40 })
const stride = fc.constantFrom(16, 24, 32)

function expected(list: readonly Entry[]): DriverProcess[] {
  return list.map(({ pid, memory }) => ({ pid, memoryUsedBytes: memory === NOT_AVAILABLE ? null : Number(memory) }))
}

describe('process lists', () => {
  it('are read right at every stride, whatever room there was', () => {
    fc.assert(
      fc.property(stride, entries, fc.nat(50), fc.boolean(), (size, list, spare, zeroed) => {
        const room = list.length + spare
        const bytes = written(size, list, room, zeroed)
        expect(inferStride(bytes, room, list.length)).toBe(size)
        expect(decodeProcesses(bytes, room, list.length)).toEqual(expected(list))
      }),
    )
  })

  it('are unknown, not garbage, at a stride that no driver had', () => {
    const list = Array.from({ length: 3 }, (_, position) => ({ pid: 100 + position, memory: 5n, instance: 0 }))
    for (const size of [20, 28]) expect(decodeProcesses(written(size, list, 9), 9, 3)).toBe(null)
  })

  it('are empty when there is nobody, and unknown when nothing was written', () => {
    const bytes = written(24, [], 5)
    expect(decodeProcesses(bytes, 5, 0)).toEqual([])
    expect(decodeProcesses(bytes, 5, 2)).toBe(null)
  })

  it('never throw, whatever bytes and counts come', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 512 }), fc.nat(20), fc.nat(20), (bytes, room, count) => {
        const processes = decodeProcesses(Buffer.from(bytes), room, count)
        expect(processes === null || processes.length <= count).toBe(true)
      }),
    )
  })
})

describe('utilization samples', () => {
  it('discard what is above 100 percent', () => {
    const bytes = Buffer.alloc(32)
    bytes.writeUInt32LE(42, 0)
    bytes.writeBigUInt64LE(123n, 8)
    for (const [position, value] of [50, 101, 100, 0xffffffff].entries()) bytes.writeUInt32LE(value, 16 + position * 4)
    expect(decodeUtilizationSample(bytes, 0)).toEqual({
      pid: 42,
      timestampMicros: 123n,
      smRatio: 0.5,
      memoryRatio: null,
      encoderRatio: 1,
      decoderRatio: null,
    })
  })
})
