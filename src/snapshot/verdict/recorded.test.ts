/** The recorded snapshots against figures of an independent replay (fixtures/snapshots/expected.json) and what is known of the runs. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ACTION } from '../read/keys.ts'
import { RECORDED, readBytes, recordedBytes } from '../read/snapshot.fixture.ts'
import { blockMapAt } from './block-map.ts'
import { devicesOf } from './device.ts'
import { DeviceAnalysis } from './device-analysis.ts'
import { diffOf } from './diff.ts'
import { byCategory, byLine, byModule } from './live-set.ts'

const EXPECTED = JSON.parse(readFileSync(`${RECORDED}/expected.json`, 'utf8')) as Record<string, Record<string, number>>
const known = new Map<string, DeviceAnalysis>()

function recorded(name: string): DeviceAnalysis {
  const one = known.get(name)
  if (one) return one
  const snapshot = readBytes(recordedBytes(name))
  const [device] = devicesOf(snapshot)
  const made = new DeviceAnalysis(snapshot, device as NonNullable<typeof device>)
  known.set(name, made)
  return made
}

const sum = (values: readonly { readonly bytes: number }[]) => values.reduce((total, { bytes }) => total + bytes, 0)

describe.each(Object.keys(EXPECTED))('%s', (name) => {
  const expected = EXPECTED[name] as Record<string, number>

  it('has the peak, the ends and the identity of the replay', () => {
    const { curve, identity, device } = recorded(name)
    expect({
      events: device.trace.count,
      peak_bytes: curve.peak.allocatedBytes,
      peak_event: curve.peak.index,
      freed_later_bytes: identity.freedInWindowBytes,
      never_freed_bytes: identity.neverFreedBytes,
      end_bytes: curve.end.allocatedBytes,
      reserved_bytes: curve.end.reservedBytes,
      reserved_peak_bytes: curve.reservedPeak.reservedBytes,
    }).toEqual(Object.fromEntries(Object.entries(expected).filter(([key]) => !/rounding|free_/.test(key))))
    expect(identity.differenceBytes).toBe(0)
  })

  it('has the free pieces and the rounding of its blocks', () => {
    const { device, lifetimes } = recorded(name)
    const { segments, isExact } = blockMapAt(device, lifetimes, device.trace.count - 1)
    const pieces = segments.filter(({ isSmall }) => !isSmall).flatMap(({ free }) => free)
    expect(isExact).toBe(true)
    expect(pieces.reduce((total, bytes) => total + bytes, 0)).toBe(expected.free_large_bytes)
    expect(Math.max(...pieces)).toBe(expected.largest_free_bytes)
    const rounding = segments.flatMap(({ blocks }) => blocks.map(({ bytes, requestedBytes }) => bytes - requestedBytes))
    expect(rounding.reduce((total, bytes) => total + bytes, 0)).toBe(expected.rounding_bytes)
  })

  it('accounts for every byte at the peak', () => {
    const analysis = recorded(name)
    const holdings = analysis.liveAt(analysis.curve.peak.index)
    expect(sum(byLine(holdings, analysis.words))).toBe(expected.peak_bytes)
    expect(sum(byCategory(holdings))).toBe(expected.peak_bytes)
    expect(sum(byModule(holdings, analysis.words))).toBeLessThanOrEqual(expected.peak_bytes as number)
  })

  it('can be rebuilt at an earlier moment: segments and blocks fit each other', () => {
    const analysis = recorded(name)
    const { device, lifetimes, curve } = analysis
    for (const index of [0, curve.peak.index, Math.floor(device.trace.count / 2)]) {
      const { segments } = blockMapAt(device, lifetimes, index)
      const level = analysis.levelAt(index)
      expect(sum(segments)).toBe(level.reservedBytes)
      const blocks = segments.flatMap((segment) => segment.blocks)
      expect(blocks.reduce((total, { requestedBytes }) => total + requestedBytes, 0)).toBe(level.allocatedBytes)
      for (const segment of segments)
        expect(sum(segment.blocks) + segment.free.reduce((total, bytes) => total + bytes, 0)).toBeLessThanOrEqual(segment.bytes)
    }
  })
})

describe('what PyTorch itself said', () => {
  const STATS = JSON.parse(readFileSync(`${RECORDED}/allocator-stats.json`, 'utf8')) as Record<string, AllocatorStats>
  interface AllocatorStats {
    readonly requested_bytes: { readonly current: number; readonly peak: number }
    readonly reserved_bytes: { readonly current: number; readonly peak: number }
    readonly retries: number
    readonly ooms: number
  }

  it.each(Object.entries(STATS))('of %s is what is read from it', (name, stats) => {
    const { curve, identity, retries, outOfMemoryEvents } = recorded(name)
    expect({
      requested_bytes: { current: curve.end.allocatedBytes, peak: curve.peak.allocatedBytes },
      reserved_bytes: { current: curve.end.reservedBytes, peak: curve.reservedPeak.reservedBytes },
      retries: retries.count,
      ooms: outOfMemoryEvents.length,
    }).toEqual(stats)
    expect(identity.differenceBytes).toBe(0)
  })

  it("finds the leak in a file of PyTorch's C++ pickler", () => {
    const { leak, device } = recorded('cpp_writer')
    expect(leak.candidates.map(({ line, bytesPerStep }) => [line, bytesPerStep])).toEqual([['/app/s.py:59 in train', 1024 ** 2]])
    expect(device.trace.find(ACTION.snapshot)).toHaveLength(1)
  })

  it('does not take for a leak what a stream still waits for', () => {
    const { leak, curve } = recorded('streams')
    expect(curve.end.pendingBytes).toBe(7 * 4096 * 4096 * 4)
    expect(leak.candidates).toEqual([])
  })

  it('sees that a limit was set where the driver had memory left', () => {
    const analysis = recorded('oom_in_the_middle')
    const [event = -1] = analysis.outOfMemoryEvents
    const { cause, waysOut, fragmentation } = analysis.outOfMemory(event)
    expect(cause).toBe('limit')
    expect(waysOut[0]?.what).toMatch(/set_per_process_memory_fraction/)
    expect(fragmentation).toMatchObject({ isExact: false, fitsIfCompacted: false })
  })

  it('takes the stack of a free for that of the allocation where it is', () => {
    const analysis = recorded('alloc_context')
    expect(analysis.lifetimes.freesRepeatStacks).toBe(true)
    const shares = new Map(byCategory(analysis.liveAt(analysis.curve.peak.index)).map(({ name, ratio }) => [name, ratio]))
    expect(shares.get('activations')).toBeGreaterThan(0.6)
    expect(shares.get('unknown')).toBeLessThan(0.1)
  })
})

describe('verdicts on recorded runs', () => {
  it('finds the line that keeps 24 MiB each step, and nothing else', () => {
    const { leak } = recorded('leak')
    expect(leak.answer).toBe('leak')
    expect(leak.candidates).toHaveLength(1)
    expect(leak.candidates[0]).toMatchObject({
      line: '/home/ml/project/train/finetune.py:77 in <module>',
      bytesPerStep: 24 * 1024 ** 2,
      freedMedianSteps: null,
    })
  })

  it('finds the tensor of the model that the training script keeps', () => {
    const { leak } = recorded('leak_hf')
    expect(leak.candidates).toHaveLength(1)
    const [candidate] = leak.candidates
    expect(candidate?.line).toBe('/home/user/train/snap.py:21 in <module>')
    expect(candidate?.stack.at(-1)).toBe('layer_norm')
    // 8 × T × 768 floats with T of 128 to 512.
    expect(candidate?.bytesPerStep).toBeGreaterThan(8 * 128 * 768 * 4)
    expect(candidate?.bytesPerStep).toBeLessThan(8 * 512 * 768 * 4)
  })

  it('is silent where nothing leaks, and says when it cannot know', () => {
    expect(['expandable', 'graphs', 'healthy', 'fragment_oom'].map((name) => recorded(name).leak.answer)).toEqual([
      'no leak',
      'no leak',
      'window too short for a verdict',
      'window too short for a verdict',
    ])
  })

  it('explains the out-of-memory error', () => {
    const analysis = recorded('fragment_oom')
    expect(analysis.outOfMemoryEvents).toEqual([5581])
    const oom = analysis.outOfMemory(5581)
    expect(oom).toMatchObject({ requestBytes: 178_257_920, deviceFreeBytes: 85_065_728, cause: 'capacity' })
    expect(oom.fragmentation).toMatchObject({
      unusableRatio: 1,
      fitsIfCompacted: true,
      freeBytes: 284_164_096,
      largestFreeBytes: 83_886_080,
      roundingBytes: 3_145_728,
    })
    const held = oom.ledger.filter(({ name }) => name !== 'free')
    expect(sum(held)).toBe(oom.level.reservedBytes)
    expect(oom.waysOut).toHaveLength(3)
    expect(oom.waysOut.every(({ isEnough }) => isEnough)).toBe(true)
    expect(analysis.retries).toMatchObject({
      count: 2,
      list: [
        { eventIndex: 5564, segments: 16, isOutOfMemory: false },
        { eventIndex: 5581, segments: 0, isOutOfMemory: true },
      ],
    })
  })

  it('knows what the memory of a language model is for', () => {
    const analysis = recorded('expandable')
    const shares = new Map(byCategory(analysis.liveAt(analysis.curve.peak.index)).map(({ name, bytes }) => [name, bytes]))
    // Weights in fp32, two moments of AdamW for each.
    expect(shares.get('optimizer_state')).toBe(785_043_456 - 0)
    expect((shares.get('weights') ?? 0) * 2).toBe(shares.get('optimizer_state'))
    expect((shares.get('unknown') ?? 0) / analysis.curve.peak.allocatedBytes).toBeLessThan(0.01)
  })

  it('separates the private pool of CUDA graphs', () => {
    const parts = recorded('graphs').fragmentation?.parts
    expect(parts?.otherPoolBytes).toBe(1_407_188_992)
    expect(parts?.otherStreamBytes).toBe(0)
  })

  it('has nothing pinned where segments are expandable', () => {
    expect(recorded('expandable').fragmentation).toMatchObject({ pins: [], pinnedSegments: 0, expandable: null })
  })

  it('shows the leak as the one difference to the healthy run', () => {
    const [healthy, leak] = [recorded('healthy'), recorded('leak')]
    const { stacks } = diffOf(healthy, healthy.device.trace.count - 1, leak, leak.device.trace.count - 1)
    const large = stacks.filter(({ deltaBytes }) => Math.abs(deltaBytes) >= 2 * 1024 ** 2)
    expect(large.map(({ change, line }) => [change, line])).toEqual([['new', '/home/ml/project/train/finetune.py:77 in <module>']])
  })
})
