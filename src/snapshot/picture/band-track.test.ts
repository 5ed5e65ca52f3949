/** The columns of the timeline: their bands sum up to what was in use, and nothing that stands out is lost between them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BAND_KINDS, type BandColumns, columnStart, differencesOf, sumsOf } from '../../core/memory/snapshot-picture.ts'
import { readBytes, recordedBytes } from '../read/snapshot.fixture.ts'
import { devicesOf } from '../verdict/device.ts'
import { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { analysisOf, randomOperations, runOf, snapshotOf } from '../verdict/random-run.fixture.ts'
import { DevicePictures } from './device-pictures.ts'

function totals({ bands }: BandColumns): number[] {
  const sums = bands.map(sumsOf)
  return Array.from({ length: sums[0]?.length ?? 0 }, (_, column) => sums.reduce((sum, values) => sum + (values[column] as number), 0))
}

/** Columns against the levels after each event; `start`: before the first. */
function expectColumns(
  columns: BandColumns,
  levels: readonly number[],
  reserved: readonly number[],
  start: number,
  startReserved: number,
): void {
  const [sums, at, least, most] = [totals(columns), sumsOf(columns.highestAt), sumsOf(columns.least), sumsOf(columns.reserved)]
  const level = (index: number) => (index < 0 ? start : (levels[index] as number))
  const held = (index: number) => (index < 0 ? startReserved : (reserved[index] as number))
  for (const [column, sum] of sums.entries()) {
    const begin = columnStart(columns, sums.length, column)
    const inside = Array.from({ length: columnStart(columns, sums.length, column + 1) - begin }, (_, i) => begin + i)
    if (begin === 0) inside.unshift(-1)
    expect(sum).toBe(level(at[column] as number))
    expect(sum).toBe(Math.max(...inside.map(level)))
    expect(inside).toContain(at[column])
    expect(least[column]).toBe(Math.min(...inside.map(level)))
    expect(most[column]).toBe(Math.max(...inside.map(held)))
  }
}

describe('columns of a random run', () => {
  it('sum up to what was in use at their highest moment, whatever the stretch, the count and what the ring lost', () => {
    fc.assert(
      fc.property(
        randomOperations,
        fc.nat(100),
        fc.nat(100),
        fc.nat(100),
        fc.integer({ min: 1, max: 40 }),
        (operations, lost, a, b, count) => {
          const run = runOf(operations)
          const cut = Math.floor((run.events.length * lost) / 101)
          const analysis = analysisOf(snapshotOf(run, cut))
          const pictures = new DevicePictures(analysis)
          const [low, high] = [Math.min(a, b), Math.max(a, b)].map((share) => Math.floor((pictures.events * share) / 100)) as [
            number,
            number,
          ]
          const { start } = analysis.curve
          for (const kind of BAND_KINDS) {
            const columns = pictures.columns(kind, low, high, count)
            expect(columns.highestAt).toHaveLength(Math.min(count, high - low))
            expectColumns(columns, run.allocated.slice(cut), run.reserved.slice(cut), start.allocatedBytes, start.reservedBytes)
          }
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('pictures of recorded files', () => {
  it.each(['healthy', 'leak', 'fragment_oom', 'graphs'])('%s: the peak stays, bands and segments sum up', (name) => {
    const snapshot = readBytes(recordedBytes(name))
    const [device] = devicesOf(snapshot)
    const analysis = new DeviceAnalysis(snapshot, device as NonNullable<typeof device>)
    const pictures = new DevicePictures(analysis)
    const picture = pictures.picture()
    for (const kind of BAND_KINDS) {
      const { columns, bands } = picture.bands[kind]
      const sums = totals(columns)
      const column = sums.indexOf(Math.max(...sums))
      expect(sums[column]).toBe(analysis.curve.peak.allocatedBytes)
      expect(sumsOf(columns.highestAt)[column]).toBe(analysis.curve.peak.index)
      expect(bands).toHaveLength(columns.bands.length)
      // A closer look at the end of the file ends with the level of the end.
      const closer = pictures.columns(kind, picture.events - 50, picture.events, 50)
      expect(totals(closer).at(-1)).toBe(analysis.curve.end.allocatedBytes)
    }
    expect(picture.flame.bytes).toBe(analysis.curve.peak.allocatedBytes)
    expect(picture.moments.map(({ index }) => index)).toContain(analysis.curve.peak.index)
    for (const { segments, leftOut, reservedBytes, allocatedBytes, index } of picture.moments) {
      expect(allocatedBytes).toBe(analysis.levelAt(index).allocatedBytes)
      expect(segments.reduce((sum, { bytes }) => sum + bytes, 0) + leftOut.bytes).toBe(reservedBytes)
      expect(reservedBytes).toBe(analysis.levelAt(index).reservedBytes)
    }
  })

  it('of a dump without events there is what is in use, and no timeline', () => {
    const { events, ...run } = runOf([{ segment: 0, slot: 0, bytes: 1000, stack: 0, isLate: false }])
    const picture = new DevicePictures(analysisOf({ ...snapshotOf({ ...run, events: [] }), device_traces: [] })).picture()
    expect(events.length).toBeGreaterThan(0)
    expect([picture.events, picture.bands.line.columns.highestAt, picture.flame.bytes]).toEqual([0, [], 1000])
    expect(picture.moments.map(({ segments }) => segments.map(({ blocks }) => blocks))).toEqual([[1]])
  })
})

describe('a flame graph', () => {
  it('has children that take no more than their parent', () => {
    const snapshot = readBytes(recordedBytes('healthy'))
    const [device] = devicesOf(snapshot)
    const { flame } = new DevicePictures(new DeviceAnalysis(snapshot, device as NonNullable<typeof device>)).picture()
    const check = (node: typeof flame): number => {
      expect(node.children.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(node.bytes)
      return 1 + node.children.reduce((sum, child) => sum + check(child), 0)
    }
    expect(check(flame)).toBeGreaterThan(10)
  })
})

describe('differences', () => {
  it('give the values again', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 48 })), (values) => {
        expect([...sumsOf(differencesOf(Float64Array.from(values)))]).toEqual(values)
      }),
    )
  })
})
