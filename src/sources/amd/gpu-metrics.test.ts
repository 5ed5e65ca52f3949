import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isApuTable, type Metrics, parseMetrics, parseMetricsHeader } from './gpu-metrics.ts'
import { attributeTable, metricsTable } from './metrics-table.fixture.ts'
import { chipThrottlers, residencyReasons, throttleReasons } from './throttle.ts'

const LIMIT = 110

function metrics(version: string, fields: Parameters<typeof metricsTable>[1] = {}): Metrics {
  const read = parseMetrics(metricsTable(version, fields))
  if (read === null) throw new Error(`${version} is not read`)
  return read
}

const common = (bits: bigint, hotspot = 40) => throttleReasons(metrics('1.3', { 112: bits, 6: hotspot }), null, LIMIT)
const own = (target: string, bits: number, hotspot = 40) =>
  throttleReasons(metrics('1.3', { 68: bits, 6: hotspot, 112: 0xffffn }), chipThrottlers(target), LIMIT)

describe('throttlers in common bits', () => {
  it('become the bits of NVML', () => {
    expect(common(0n)).toBe(0)
    expect(common(1n << 2n)).toBe(0x4)
    expect(common(1n << 16n)).toBe(0x8)
    expect(common(1n << 31n)).toBe(0x8)
    expect(common(1n << 35n)).toBe(0x20)
    expect(common(1n << 47n)).toBe(0x48)
    expect(common((1n << 0n) | (1n << 35n))).toBe(0x24)
    expect(common(0xffffffffffffffffn)).toBe(null)
  })

  it('count the hottest spot only when it is hot', () => {
    expect(common(1n << 36n, 41)).toBe(0)
    expect(common(1n << 36n, 106)).toBe(0x20)
    expect(common(1n << 36n, 0xffff)).toBe(0)
  })
})

describe('throttlers in the bits of a chip', () => {
  it('are read by its table, which comes before the common bits', () => {
    // RX 7600S and Radeon AI PRO R9700, idle: the firmware always reports the hottest spot.
    expect(own('gfx1102', 1 << 1)).toBe(0)
    expect(own('gfx1201', 1 << 1)).toBe(0)
    expect(own('gfx1102', 1 << 1, 109)).toBe(0x20)
    expect(own('gfx1201', (1 << 1) | (1 << 14))).toBe(0x4)
    expect(own('gfx1100', (1 << 16) | (1 << 13))).toBe(0xc)
    expect(own('gfx1030', 1 << 13)).toBe(0x4)
    expect(own('gfx1030', 1 << 3)).toBe(0x20)
    expect(own('gfx1010', 1 << 13)).toBe(0x8)
    expect(own('gfx908', 1 << 16)).toBe(0x48)
  })

  it('of RX 9000 are those of its header, bit by bit', () => {
    const kindOf = (bit: number) => own('gfx1201', 1 << bit, 109)
    const kinds = Array.from({ length: 21 }, (_, bit) => kindOf(bit))
    expect(kinds.slice(0, 12)).toEqual(Array.from({ length: 12 }, () => 0x20))
    expect(kinds.slice(12, 14)).toEqual([0x8, 0x8])
    expect(kinds.slice(14, 18)).toEqual([0x4, 0x4, 0x4, 0x4])
    expect(kinds.slice(18)).toEqual([0, 0, 0])
    expect([1, 2, 3, 4].map((bit) => own('gfx1201', 1 << bit))).toEqual([0, 0, 0, 0x20])
  })

  it('say nothing on a chip without a table', () => {
    expect(throttleReasons(metrics('1.1', { 68: 1 }), chipThrottlers('gfx906'), LIMIT)).toBe(null)
    expect(throttleReasons(metrics('1.1', { 68: 2 }), chipThrottlers('gfx1010'), LIMIT)).toBe(0x20)
    expect(chipThrottlers(null)).toBe(null)
    // A processor with the graphics core of a card has bits of its own.
    expect(throttleReasons(metrics('2.1', { 108: 0xffff }), chipThrottlers('gfx1103'), LIMIT)).toBe(null)
    expect(throttleReasons(metrics('2.3', { 108: 0xffff, 120: 1n << 32n }), chipThrottlers('gfx1103'), LIMIT)).toBe(0x20)
  })
})

describe('throttlers that are counted', () => {
  it('are those whose time grew', () => {
    const before = metrics('1.6', { 32: 1000, 40: 5, 44: 7 })
    expect(residencyReasons(before, metrics('1.6', { 32: 1100, 40: 5, 44: 7 }))).toBe(0)
    expect(residencyReasons(before, metrics('1.6', { 32: 1100, 40: 6, 44: 7 }))).toBe(0x4)
    expect(residencyReasons(before, metrics('1.6', { 32: 1100, 40: 5, 44: 8 }))).toBe(0x20)
    expect(residencyReasons(before, metrics('1.6', { 32: 1100, 36: 1, 40: 5, 44: 7 }))).toBe(0x48)
    expect(residencyReasons(metrics('3.0'), metrics('3.0', { 248: 3 }))).toBe(0x20)
    expect(residencyReasons(metrics('1.4'), metrics('1.4'))).toBe(null)
  })
})

describe('an Instinct made of several dies', () => {
  it('tells energy, XGMI traffic and the dies of each partition', () => {
    const read = metrics('1.6', { 16: 65_536n * 12n, 128: 4n, 136: 6n, 192: 1n, 306: 2, 312: 100, 316: 50, 480: 25 })
    expect(read).toMatchObject({ energyJoules: 12, xgmiReadBytes: 10 * 1024, xgmiWrittenBytes: 1024 })
    expect(read.partitions?.map((dies) => dies.slice(0, 2))).toEqual([
      [1, 0.5],
      [0.25, 0],
    ])
  })

  it('leaves out dies and links that are not there', () => {
    const nothing = parseMetrics(metricsTable('1.7', { 338: 1 }, 0xff))
    expect(nothing).toMatchObject({ energyJoules: null, xgmiReadBytes: null, partitions: [[]] })
  })
})

describe('gpu_metrics', () => {
  it('says nothing about tables it does not know', () => {
    expect(parseMetrics(metricsTable('1.3').subarray(0, 100))).toBe(null)
    const unknown = metricsTable('1.3')
    unknown.writeUInt8(10, 3)
    expect(parseMetrics(unknown)).toBe(null)
    const longer = Buffer.concat([metricsTable('1.3'), Buffer.alloc(8)])
    longer.writeUInt16LE(128, 0)
    expect(parseMetrics(longer)).toBe(null)
    expect(parseMetricsHeader(Buffer.alloc(0))).toBe(null)
  })

  it('recognizes an APU by the format', () => {
    const isApu = (version: string) => isApuTable(parseMetricsHeader(metricsTable(version)) ?? { format: 0, content: 0 })
    expect(['1.3', '2.2', '3.0'].map(isApu)).toEqual([false, true, true])
  })

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.constantFrom('1.0', '1.3', '1.6', '1.8', '2.4', '3.0'), fc.uint8Array({ maxLength: 4000 }), (version, bytes) => {
        const table = metricsTable(version)
        table.set(bytes.subarray(0, table.length - 4), 4)
        const read = parseMetrics(table)
        const reasons = read === null ? null : throttleReasons(read, chipThrottlers('gfx1100'), LIMIT)
        expect(reasons === null || (reasons & ~0x6c) === 0).toBe(true)
        for (const value of read?.partitions?.flat() ?? []) expect(value).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('a table of attributes (1.9)', () => {
  const UNKNOWN = -1n
  const idle: Parameters<typeof attributeTable>[0] = [
    [0, 2, [42n]],
    [3, 2, [194n]],
    [7, 6, [65_536_000n]],
    ...[9, 10, 11, 12, 13, 14].map((id) => [id, 6, [BigInt(id * 100)]] as const),
    [29, 6, [1n, 2n, 3n, UNKNOWN]],
    [30, 6, [10n, UNKNOWN, UNKNOWN, UNKNOWN]],
    [38, 2, [1n]],
    [40, 4, [0n, 50n, 120n, UNKNOWN]],
    // One that is not known here.
    [900, 0, [7n, 8n]],
  ]
  const changed = (id: number, value: bigint) => idle.map((one) => (one[0] === id ? ([id, one[1], [value]] as const) : one))

  it('is read by the numbers of its attributes, in whatever order', () => {
    const expected = {
      hotspotCelsius: 42,
      energyJoules: 1000,
      xgmiReadBytes: 6 * 1024,
      xgmiWrittenBytes: 10 * 1024,
      partitions: [[0, 0.5, 1]],
    }
    expect(parseMetrics(attributeTable(idle))).toMatchObject(expected)
    expect(parseMetrics(attributeTable([...idle].reverse()))).toMatchObject(expected)
  })

  it('tells throttling by what has grown', () => {
    const read = (attributes: Parameters<typeof attributeTable>[0]) => parseMetrics(attributeTable(attributes)) as Metrics
    expect(residencyReasons(read(idle), read(idle))).toBe(0)
    expect(residencyReasons(read(idle), read(changed(9, 5000n)))).toBe(0)
    expect(residencyReasons(read(idle), read(changed(11, 5000n)))).toBe(0x4)
    expect(residencyReasons(read(idle), read(changed(14, 5000n)))).toBe(0x20)
    expect(residencyReasons(read(idle), read(changed(10, 5000n)))).toBe(0x48)
  })

  it('says nothing of dies that may belong to any of several partitions, nor of what is missing or unknown', () => {
    expect(parseMetrics(attributeTable(changed(38, 4n)))?.partitions).toBe(null)
    expect(parseMetrics(attributeTable(changed(7, UNKNOWN)))?.energyJoules).toBe(null)
    expect(parseMetrics(attributeTable([[0, 2, [UNKNOWN]]]))).toEqual({
      ...{ chipThrottlers: null, commonThrottlers: null, hotspotCelsius: null, residency: null, energyJoules: null },
      ...{ xgmiReadBytes: null, xgmiWrittenBytes: null, partitions: null },
    })
  })

  it('is refused as a whole when it does not add up, and so is every version that is not known', () => {
    const table = attributeTable(idle)
    for (let length = 0; length < table.length; length++) expect(parseMetrics(table.subarray(0, length))).toBe(null)
    const many = Buffer.from(table)
    many.writeUInt32LE(idle.length + 1, 4)
    expect(parseMetrics(many)).toBe(null)
    const strange = Buffer.from(table)
    strange.writeUInt32LE(0xf << 20, 8)
    expect(parseMetrics(strange)).toBe(null)
    const later = Buffer.from(table)
    later.writeUInt8(10, 3)
    expect(parseMetrics(later)).toBe(null)
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void parseMetrics(Buffer.from([bytes.length, 0, 1, 9, ...bytes]))))
  })
})
