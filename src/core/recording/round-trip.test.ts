import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  anyCount,
  anyGpuInfo,
  anyGpuProcess,
  anyHostSample,
  anyProcessInfo,
  anyReadings,
  anyStep,
  anyText,
  anyTime,
  maybe,
} from '../fields/arbitrary.fixture.ts'
import { GPU_EVENTS } from '../fields/gpu.ts'
import type { GpuEvent, GpuSample, ProcessInfo, ProcessView } from '../model.ts'
import { deviceRecord, eventRecord, gpuRecord, hostRecord, SLOW_FIELDS, stepRecord } from '../record.ts'
import { parseDeviceLine, parseEventLine, parseGpuLine, parseHostLine, parseStepLine } from './recording.ts'

/** Through the text, as it lies in the file. */
const written = (record: object) => JSON.stringify(record)

const process: fc.Arbitrary<ProcessView> = fc
  .record({ row: anyGpuProcess, info: maybe(anyProcessInfo) })
  .map(({ row, info }) => ({ ...row, gpu: '', info: info === null ? null : { ...info, pid: row.pid } }))

describe('a recording gives back what was recorded', () => {
  it('of a GPU and its processes', () => {
    const sample = fc.record({
      at: anyTime,
      readings: anyReadings,
      rows: maybe(fc.array(process, { maxLength: 4 })),
      lost: fc.boolean(),
      gpu: anyText,
    })
    fc.assert(
      fc.property(sample, anyGpuInfo, ({ at, readings, rows, lost, gpu }, info) => {
        const slowHeld = [...SLOW_FIELDS].some((field) => readings[field] !== null)
        const original: GpuSample = {
          kind: 'gpu',
          at,
          gpu,
          state: lost ? 'lost' : 'ok',
          stateReason: lost ? 'fell off the bus' : null,
          slowAt: slowHeld ? at : null,
          ...readings,
          processes: rows?.map(({ info: _, gpu: __, ...row }) => row) ?? null,
        }
        const parsed = parseGpuLine(written(gpuRecord(original, info, rows ?? [])))
        if (typeof parsed === 'string') throw new Error(parsed)
        expect(parsed.sample).toEqual(original)
        expect(parsed.index).toBe(info.index)
        expect(parsed.infos).toEqual((rows ?? []).flatMap((row) => (row.info !== null && saysSomething(row.info) ? [row.info] : [])))
      }),
    )
  })

  it('of a device', () => {
    fc.assert(
      fc.property(anyTime, anyGpuInfo, (at, info) => {
        expect(parseDeviceLine(written(deviceRecord(info, at)))).toEqual({ kind: 'device', at, device: info })
      }),
    )
  })

  it('of the host', () => {
    fc.assert(
      fc.property(anyHostSample, (original) => {
        expect(parseHostLine(written(hostRecord(original)))).toEqual(original)
      }),
    )
  })

  it('of an event', () => {
    const event: fc.Arbitrary<GpuEvent> = fc.record({
      kind: fc.constant('event' as const),
      at: anyTime,
      gpu: maybe(anyText),
      event: fc.constantFrom(...GPU_EVENTS),
      code: maybe(anyCount),
      message: anyText,
      origin: anyText,
    })
    fc.assert(
      fc.property(event, (original) => {
        expect(parseEventLine(written(eventRecord(original)))).toEqual(original)
      }),
    )
  })

  it('of a training step, NaN and Infinity among its numbers', () => {
    fc.assert(
      fc.property(anyStep, (original) => {
        expect(parseStepLine(written(stepRecord(original)))).toEqual(original)
      }),
    )
  })
})

describe('a device line', () => {
  const line = { timestamp: '2026-11-15T06:30:58.115Z', id: 'GPU-a', index: 3, vendor: 'nvidia' }

  it('need not hold what can be unknown', () => {
    const parsed = parseDeviceLine(line)
    expect(parsed).toMatchObject({
      device: { id: 'GPU-a', label: '3', provenance: 'live', mig: null, migMode: null, unifiedMemory: false },
    })
  })

  it.each([
    { id: undefined },
    { index: 'first' },
    { label: 3 },
    { provenance: 'guessed' },
    { powerLimitWatts: '700' },
    { migMode: 'perhaps' },
    { mig: [] },
    { mig: { parentId: 'GPU-a' } },
  ])('with %j is not used', (wrong) => {
    expect(parseDeviceLine({ ...line, ...wrong })).toBe('wrong_type')
  })
})

function saysSomething(info: ProcessInfo): boolean {
  return Object.entries(info).some(([key, value]) => key !== 'pid' && value !== null)
}
