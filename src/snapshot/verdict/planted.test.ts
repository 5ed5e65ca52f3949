/** Everything that was planted is found, and nothing else. `node bench/snapshot.mjs` does the same with 100 MB and 1 GB. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type PlantedOptions, type PlantedTruth, stepsFor, writePlanted } from '../../../bench/snapshot/planted.mjs'
import { plantedFaults } from '../../../bench/snapshot/planted-check.mjs'
import { deviceJson, type Json } from '../output/json.ts'
import { SnapshotReader } from '../read/read-snapshot.ts'
import { devicesOf } from './device.ts'
import { DeviceAnalysis } from './device-analysis.ts'
import { diffOf } from './diff.ts'

function planted(options: PlantedOptions & { steps: number }): { analysis: DeviceAnalysis; truth: PlantedTruth } {
  const reader = new SnapshotReader()
  const truth = writePlanted((bytes) => reader.write(Uint8Array.from(bytes)), options)
  const snapshot = reader.end()
  const [device] = devicesOf(snapshot)
  return { truth, analysis: new DeviceAnalysis(snapshot, device as NonNullable<typeof device>) }
}

const jsonOf = (analysis: DeviceAnalysis): Json => deviceJson(analysis, { index: analysis.curve.peak.index, name: 'the peak' }, 0)

describe('a file of 10 MB', () => {
  let one: ReturnType<typeof planted>
  beforeAll(() => {
    one = planted({ steps: stepsFor(10e6) })
  })

  it('has its size', () => {
    expect(one.truth.bytes / 10e6).toBeCloseTo(1, 1)
  })

  it('gives what was planted', () => {
    expect(plantedFaults(jsonOf(one.analysis), one.truth)).toEqual([])
  })

  it('would be noticed if it did not', () => {
    const wrong = {
      ...one.truth,
      peak: { ...one.truth.peak, bytes: one.truth.peak.bytes + 1, event_index: 0, by_category: { weights: one.truth.peak.bytes } },
    }
    expect(plantedFaults(jsonOf(one.analysis), wrong).length).toBeGreaterThan(2)
    expect(
      plantedFaults(jsonOf(one.analysis), { ...one.truth, leak: { ...one.truth.leak, line: '/app/cache.py:31 lookup' } }),
    ).toHaveLength(1)
  })

  it('calls fragmentation the cause and names what pins the segments', () => {
    const [event = -1] = one.analysis.outOfMemoryEvents
    const oom = one.analysis.outOfMemory(event)
    expect(oom.cause).toBe('fragmentation')
    expect(oom.waysOut.some(({ line }) => line === '/app/hooks.py:9 in register')).toBe(true)
  })
})

describe('variants', () => {
  it.each([{ seed: 2 }, { seed: 3, writer: 'cpp' }, { seed: 4, stacks: 'python' }, { seed: 5, protocol: 2 }] as const)(
    'give what was planted: %o',
    (options) => {
      const { analysis, truth } = planted({ ...options, steps: 90 })
      expect(plantedFaults(jsonOf(analysis), truth)).toEqual([])
    },
  )

  it('keep peak, leak and fragmentation when the ring lost its start', () => {
    const whole = planted({ steps: 120 })
    const cutEvents = whole.truth.peak.event_index - 10
    const { analysis, truth } = planted({ steps: 120, cutEvents })
    expect(truth.peak).toMatchObject({ event_index: 10, bytes: whole.truth.peak.bytes })
    expect(analysis.curve.peak).toMatchObject({ index: 10, allocatedBytes: whole.truth.peak.bytes })
    expect(analysis.leak.candidates.map(({ line }) => line)).toEqual(['/app/metrics.py:57 in log_metrics'])
    expect(analysis.fragmentation?.pinnedSegments).toBe(truth.fragmentation.pinned_segments)
  })

  it('find steps that nobody marked', () => {
    const { analysis } = planted({ steps: 80 })
    expect(analysis.steps).toMatchObject({ source: 'annotations', name: 'Optimizer.step#AdamW.step' })
    const reader = new SnapshotReader()
    writePlanted((bytes) => reader.write(Uint8Array.from(bytes)), { steps: 80 })
    const { tables, layout, ...rest } = reader.end()
    const bare = { ...rest, tables, layout: { ...layout, annotations: { first: 0, count: 0 } } }
    const [device] = devicesOf(bare)
    const unmarked = new DeviceAnalysis(bare, device as NonNullable<typeof device>)
    expect(unmarked.steps.source).toBe('repetition')
    expect(unmarked.steps.ends.length).toBe(80)
    expect(unmarked.leak.candidates.map(({ line }) => line)).toEqual(['/app/metrics.py:57 in log_metrics'])
  })

  it('differ at the end by the leak alone where one ran longer', () => {
    // From 256 steps on the caches are full.
    const [short, long] = [planted({ steps: 260 }), planted({ steps: 360 })]
    const end = ({ analysis }: typeof short) => analysis.device.trace.count - 1
    const { stacks } = diffOf(short.analysis, end(short), long.analysis, end(long))
    expect(stacks.map(({ line, change, deltaBytes }) => [line, change, deltaBytes])).toEqual([
      ['/app/metrics.py:57 in log_metrics', 'grown', 100 * 64 * 1024],
    ])
  })
})
