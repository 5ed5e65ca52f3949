/** What must not change a verdict: a ring that lost its start, another protocol, another writer, the same file twice. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deviceJson } from '../output/json.ts'
import { curveOf } from './curve.ts'
import type { DeviceAnalysis } from './device-analysis.ts'
import { diffOf } from './diff.ts'
import { analysisOf, randomOperations, runOf, snapshotOf } from './random-run.fixture.ts'
import { Selection } from './selection.ts'

/** Levels after each event. */
function levels(analysis: DeviceAnalysis): { allocated: number[]; reserved: number[] } {
  const { device, lifetimes, words } = analysis
  const all = Array.from({ length: device.trace.count }, (_, i) => i)
  const { stops } = curveOf(device, lifetimes, new Selection(device, words), all)
  return { allocated: stops.map(({ allocatedBytes }) => allocatedBytes), reserved: stops.map(({ reservedBytes }) => reservedBytes) }
}

const peakOf = (values: readonly number[]) => values.reduce((best, value, i) => (value > (values[best] ?? 0) ? i : best), 0)

describe('a random run', () => {
  it('has the levels and the peak that it should', () => {
    fc.assert(
      fc.property(randomOperations, (operations) => {
        const run = runOf(operations)
        const analysis = analysisOf(snapshotOf(run))
        expect(levels(analysis)).toEqual({ allocated: run.allocated, reserved: run.reserved })
        expect(analysis.curve.peak).toMatchObject({ index: peakOf(run.allocated), allocatedBytes: Math.max(...run.allocated) })
        expect(analysis.identity).toMatchObject({ differenceBytes: 0, freedInWindowBytes: 0, neverFreedBytes: 0 })
      }),
    )
  })

  it('keeps them after event K when the first K events are lost', () => {
    fc.assert(
      fc.property(randomOperations, fc.nat(100), (operations, share) => {
        const run = runOf(operations)
        const cut = Math.floor((run.events.length * share) / 101)
        const analysis = analysisOf(snapshotOf(run, cut))
        expect(levels(analysis)).toEqual({ allocated: run.allocated.slice(cut), reserved: run.reserved.slice(cut) })
        expect(analysis.identity.differenceBytes).toBe(0)
        const [whole, before] = [analysisOf(snapshotOf(run)), run.allocated[cut - 1] ?? 0]
        expect(analysis.curve.start.allocatedBytes).toBe(before)
        expect(diffOf(whole, run.events.length - 1, analysis, run.events.length - cut - 1).stacks).toEqual([])
      }),
    )
  })

  it('sums up exactly at every moment, by line and by category', () => {
    fc.assert(
      fc.property(randomOperations, fc.nat(100), (operations, share) => {
        const run = runOf(operations)
        const analysis = analysisOf(snapshotOf(run, Math.floor((run.events.length * share) / 101)))
        for (let index = -1; index < analysis.device.trace.count; index++) {
          const held = analysis.liveAt(index).reduce((sum, { bytes }) => sum + bytes, 0)
          expect(held).toBe(analysis.levelAt(index).allocatedBytes)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('reads the same in every protocol and of both writers', () => {
    fc.assert(
      fc.property(randomOperations, fc.constantFrom(2, 3, 5, 'cpp' as const), (operations, writer) => {
        const value = snapshotOf(runOf(operations))
        const json = (analysis: DeviceAnalysis) => deviceJson(analysis, { index: analysis.curve.peak.index, name: 'the peak' }, 0)
        const other = writer === 'cpp' ? ({ writer } as const) : { protocol: writer }
        expect(json(analysisOf(value, other))).toEqual(json(analysisOf(value)))
      }),
    )
  })

  it('differs in nothing from itself, and by what was added', () => {
    fc.assert(
      fc.property(randomOperations, (operations) => {
        const run = runOf(operations)
        const [one, same] = [analysisOf(snapshotOf(run)), analysisOf(snapshotOf(run))]
        expect(diffOf(one, one.curve.peak.index, same, same.curve.peak.index)).toMatchObject({ deltaBytes: 0, stacks: [] })
        const more = analysisOf(snapshotOf(runOf([...operations, { segment: 0, slot: 0, bytes: 1000, stack: 0, isLate: false }])))
        const [from, to] = [run.allocated.at(-1) ?? 0, more.curve.end.allocatedBytes]
        const { deltaBytes, stacks } = diffOf(one, one.device.trace.count - 1, more, more.device.trace.count - 1)
        expect(deltaBytes).toBe(to - from)
        expect(stacks.reduce((sum, change) => sum + change.deltaBytes, 0)).toBe(deltaBytes)
      }),
    )
  })

  it('says what is missing where events are missing', () => {
    const operations = [0, 1, 2].map((slot) => ({ segment: 0, slot, bytes: 1000 * (slot + 1), stack: slot, isLate: false }))
    const run = runOf([...operations, { segment: 0, slot: 1, bytes: 1, stack: 0, isLate: false }])
    const value = snapshotOf(run) as { device_traces: { action: string }[][] }
    const [trace = []] = value.device_traces
    const without = (action: string) => analysisOf({ ...value, device_traces: [trace.filter((event) => event.action !== action)] })
    expect(without('alloc').identity).toMatchObject({ differenceBytes: 0, freedInWindowBytes: 2000, neverFreedBytes: 4000 })
    expect(without('free_completed').identity).toMatchObject({ differenceBytes: 0, hasFrees: true })
    const noFrees = trace.filter(({ action }) => !action.startsWith('free'))
    expect(analysisOf({ ...value, device_traces: [noFrees] }).identity).toMatchObject({ differenceBytes: 2000, hasFrees: false })
    const lost = runOf([...operations, { ...operations[0], isLate: false }, { ...operations[0], bytes: 500 }] as typeof operations)
    const kept = lost.events.filter(({ action }) => !action.startsWith('free'))
    expect(analysisOf(snapshotOf({ ...lost, events: kept })).identity).toMatchObject({ lostFrees: 1, differenceBytes: 0 })
  })
})
