/** Files that lack something: events, times, frees; several devices; an out-of-memory that is not the last event. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Shared, Tuple } from '../../../bench/snapshot/pickle-writer.mjs'
import { summaryText } from '../output/summary-text.ts'
import { frame, readValue } from '../read/snapshot.fixture.ts'
import { blockMapAt } from './block-map.ts'
import { devicesOf } from './device.ts'
import { DeviceAnalysis } from './device-analysis.ts'
import { byCategory, byLine } from './live-set.ts'
import { indexOf, readMoment } from './moment.ts'
import { analysisOf, randomOperations, runOf, snapshotOf } from './random-run.fixture.ts'

const operations = [0, 1, 2, 1, 3].map((slot, i) => ({ segment: 0, slot, bytes: 1000 * (i + 1), stack: slot, isLate: false }))
const value = snapshotOf(runOf(operations)) as { device_traces: Record<string, unknown>[][]; segments: Record<string, unknown>[] }
const textOf = (analysis: DeviceAnalysis) =>
  summaryText({ analysis, moment: { index: analysis.curve.peak.index, name: 'the peak' }, minBytes: 0, limitBytes: null })

describe('a file without events', () => {
  it('reports what is there at the end, and no peak', () => {
    for (const one of [{ ...value, device_traces: [[]] }, value.segments]) {
      const analysis = analysisOf(one)
      expect(analysis.curve.peak).toEqual(analysis.curve.end)
      expect(analysis.curve.end.allocatedBytes).toBe(1000 + 3000 + 5000)
      expect(analysis.leak.answer).toBe('not known')
      expect(analysis.fragmentation).toBe(null)
      const text = textOf(analysis)
      expect(text).toMatch(/^GPU 0: no events/)
      expect(text).toMatch(/In use at the end: 8\.8 KiB in 3 blocks/)
      expect(text).not.toMatch(/Peak|Retries/)
    }
  })
})

describe('a file without times', () => {
  it('is judged by the order of its events', () => {
    const bare = { ...value, device_traces: value.device_traces.map((trace) => trace.map(({ time_us: _, ...event }) => event)) }
    const analysis = analysisOf(bare)
    expect(analysis.curve.peak.allocatedBytes).toBe(analysisOf(value).curve.peak.allocatedBytes)
    expect(textOf(analysis)).toMatch(/at event \d+\n/)
    expect(() => indexOf(readMoment('1.5'), analysis.device.trace, 0)).toThrow(/has no times/)
    expect(indexOf(readMoment('#2'), analysis.device.trace, 0)).toBe(2)
  })
})

describe('several devices', () => {
  it('are distinguished by trace and by segment', () => {
    const shifted = value.segments.map((segment) => ({ ...segment, device: 3 }))
    const [trace = []] = value.device_traces
    const snapshot = readValue({ segments: [...value.segments, ...shifted], device_traces: [trace, [], [], trace.slice(2)] })
    const devices = devicesOf(snapshot)
    expect(devices.map(({ index, trace: { count } }) => [index, count])).toEqual([
      [0, trace.length],
      [3, trace.length - 2],
    ])
    const [first, last] = devices.map((device) => new DeviceAnalysis(snapshot, device))
    expect(first?.curve.end).toMatchObject({ allocatedBytes: last?.curve.end.allocatedBytes })
    expect(last?.identity).toMatchObject({ differenceBytes: 0, neverFreedBytes: 1000 })
  })
})

describe('other devices than CUDA', () => {
  /** The same run with the frames that such a device has between the allocator and the program. */
  const dumped = (library: string, native: string, without: readonly string[]) => {
    const own = frame('step', '/app/train.py', 7)
    const frames = [frame(native, '??', 0), frame('empty', library, 210), own]
    const bare = (record: Record<string, unknown>) => Object.fromEntries(Object.entries(record).filter(([key]) => !without.includes(key)))
    return {
      segments: value.segments.map((segment) =>
        bare({ ...segment, blocks: (segment.blocks as Record<string, unknown>[]).map((block) => ({ ...block, frames })) }),
      ),
      device_traces: value.device_traces.map((trace) => trace.map((event) => bare({ ...event, frames }))),
    }
  }

  it.each([
    ['XPU', '/opt/torch/xpu/memory.py', 'c10::xpu::XPUCachingAllocator::DeviceCachingAllocator::malloc', [], 'cpp'],
    ['MTIA', '/opt/torch/mtia/memory.py', 'at::detail::empty_generic', ['segment_pool_id', 'is_expandable', 'time_us'], 'python'],
  ] as const)('%s: same peak, and the line of the program itself', (_, library, native, without, writer) => {
    const analysis = analysisOf(dumped(library, native, without), { writer, ...(writer === 'python' ? { protocol: 5 } : {}) })
    const known = analysisOf(value)
    expect(analysis.curve.peak).toEqual(known.curve.peak)
    expect(analysis.identity.differenceBytes).toBe(0)
    expect(byLine(analysis.liveAt(analysis.curve.peak.index), analysis.words).map(({ name }) => name)).toEqual(['/app/train.py:7 in step'])
    expect(analysis.fragmentation?.request).toMatchObject({ bytes: 5000, pool: '0.0' })
    expect(textOf(analysis)).toMatch(/^GPU 0: \d+ events/)
  })
})

describe('the blocks at a moment', () => {
  it('are those that were in use then, in the segments that there were', () => {
    fc.assert(
      fc.property(randomOperations, fc.nat(100), fc.nat(100), (random, cutShare, share) => {
        const run = runOf(random)
        const cut = Math.floor((run.events.length * cutShare) / 101)
        const { device, lifetimes } = analysisOf(snapshotOf(run, cut))
        const index = Math.floor((device.trace.count * share) / 101)
        const { segments } = blockMapAt(device, lifetimes, index)
        const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0)
        expect(bytes).toBe(run.reserved[cut + index])
        const blocks = segments.flatMap((segment) => segment.blocks)
        expect(blocks.reduce((sum, { requestedBytes }) => sum + requestedBytes, 0)).toBe(run.allocated[cut + index])
        for (const { address, bytes: all, blocks: inside } of segments)
          for (const block of inside) {
            expect(block.address).toBeGreaterThanOrEqual(address)
            expect(block.address + block.bytes).toBeLessThanOrEqual(address + all)
          }
      }),
    )
  })
})

describe('an out-of-memory', () => {
  const MIB = 2 ** 20
  const [make, hold, work] = [[frame('make', '/app/a.py', 1)], [frame('hold', '/app/b.py', 2)], [frame('work', '/app/c.py', 3)]]
  const block = (address: number, size: number, state: string, frames: unknown) => ({ address, size, requested_size: size, state, frames })
  const segment = (address: number, total: number, blocks: unknown[], more = {}) => ({
    device: 0,
    address,
    total_size: total,
    stream: 0,
    segment_type: 'large',
    segment_pool_id: new Tuple(0, 0),
    is_expandable: false,
    frames: new Shared([]),
    blocks,
    ...more,
  })
  const story = (segments: unknown[], free: number, request: number) => {
    const oom = { action: 'oom', device_free: free, size: request, stream: 0, time_us: 5, frames: make }
    const analysis = analysisOf({ segments, device_traces: [[oom]] })
    return analysis.outOfMemory(0)
  }

  it('has the cause that its figures say', () => {
    const full = segment(0, 100 * MIB, [block(0, 100 * MIB, 'active_allocated', hold)])
    expect(story([full], MIB, 50 * MIB)).toMatchObject({ cause: 'capacity', missingBytes: 49 * MIB })
    expect(story([full], 60 * MIB, 50 * MIB).cause).toBe('limit')
    const split = [
      block(0, 40 * MIB, 'inactive', []),
      block(40 * MIB, 20 * MIB, 'active_allocated', work),
      block(60 * MIB, 40 * MIB, 'inactive', []),
    ]
    const fragmented = story(
      [
        full,
        segment(
          200 * MIB,
          100 * MIB,
          split.map((one) => ({ ...one, address: one.address + 200 * MIB })),
        ),
      ],
      MIB,
      50 * MIB,
    )
    expect(fragmented).toMatchObject({
      cause: 'fragmentation',
      fragmentation: { unusableRatio: 1, largestFreeBytes: 40 * MIB, fitsIfCompacted: true },
    })
    const small = [segment(0, 40 * MIB, [block(0, 40 * MIB, 'inactive', [])]), full]
    expect(story(small, MIB, 50 * MIB).fragmentation).toMatchObject({ fitsIfCompacted: false, parts: { wholeSegmentBytes: 40 * MIB } })
  })

  it('distinguishes pieces of another stream, pool and size class', () => {
    const free = (address: number, more: object) => segment(address, 64 * MIB, [block(address, 64 * MIB, 'inactive', [])], more)
    const segments = [
      free(0, { stream: 7 }),
      free(2 ** 30, { segment_pool_id: new Tuple(0, 1) }),
      free(2 ** 31, { segment_type: 'small' }),
      free(2 ** 32, {}),
    ]
    const { parts, unusableRatio } = story(segments, 0, 50 * MIB).fragmentation
    expect(parts).toEqual({
      usableBytes: 64 * MIB,
      wholeSegmentBytes: 0,
      pinnedBytes: 0,
      scatteredBytes: 0,
      otherStreamBytes: 64 * MIB,
      otherPoolBytes: 64 * MIB,
      otherSizeClassBytes: 64 * MIB,
    })
    expect(unusableRatio).toBe(0)
  })
})

describe('categories', () => {
  it('follow a pattern of the person before anything else', () => {
    const snapshot = readValue(value)
    const [device] = devicesOf(snapshot)
    const categories = [{ category: 'input', match: /file0\.py:10 make/ }] as const
    const analysis = new DeviceAnalysis(snapshot, device as NonNullable<typeof device>, { categories })
    const held = analysis.liveAt((device?.trace.count ?? 0) - 1)
    expect(byCategory(held).find(({ name }) => name === 'input')?.bytes).toBe(1000)
    expect(byLine(held, analysis.words).map(({ name }) => name)).toContain('/app/file0.py:10 in make')
  })
})
