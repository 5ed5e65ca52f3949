import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GpuEvent, GpuInfo, GpuReadings, GpuSample, HostSample, ProcessInfo, ProcessView, Reading, TrainingStep } from '../model.ts'
import { deviceRecord, eventRecord, GPU_COLUMNS, gpuRecord, hostRecord, SLOW_FIELDS, stepRecord } from '../record.ts'
import { parseDeviceLine, parseEventLine, parseGpuLine, parseHostLine, parseStepLine } from './recording.ts'

/** Through the text, as it lies in the file. */
const written = (record: object) => JSON.stringify(record)

const at = fc.integer({ min: 0, max: 253_402_300_799_999 })
const ratio = fc.integer({ min: 0, max: 1_000_000 }).map((millionths) => millionths / 1e6)
const bytes = fc.integer({ min: 0, max: 2 ** 50 })
const hertz = fc.integer({ min: 0, max: 10 ** 11 })
const plain = fc.double({ min: 0, max: 1e12, noNaN: true }).map((value) => value + 0)
const count = fc.nat()
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const anyNumber = fc.double().map((value) => (Object.is(value, -0) ? 0 : value))

const readings: fc.Arbitrary<GpuReadings> = fc.record(
  Object.fromEntries(
    GPU_COLUMNS.map(({ field, scale }) => [
      field,
      maybe(scale === 'percent' ? ratio : scale === 'mebibytes' ? bytes : scale === 'megahertz' ? hertz : plain),
    ]),
  ),
) as unknown as fc.Arbitrary<GpuReadings>

const info: fc.Arbitrary<ProcessInfo> = fc.record({
  pid: fc.integer({ min: 1, max: 2 ** 22 }),
  parentPid: maybe(count),
  startedAt: maybe(at),
  user: maybe(text),
  uid: maybe(count),
  name: maybe(text),
  executable: maybe(text),
  command: fc.constant(null),
  state: maybe(fc.constantFrom('R', 'S', 'D')),
  cpuRatio: maybe(fc.integer({ min: 0, max: 64_000_000 }).map((millionths) => millionths / 1e6)),
  residentBytes: maybe(bytes),
  container: maybe(text),
  pod: maybe(text),
  slurmJob: maybe(text),
})

const process: fc.Arbitrary<ProcessView> = fc
  .record({
    pid: fc.integer({ min: 1, max: 2 ** 22 }),
    type: fc.constantFrom('compute' as const, 'graphics' as const, 'both' as const),
    memoryUsedBytes: maybe(bytes),
    smRatio: maybe(ratio),
    memoryRatio: maybe(ratio),
    encoderRatio: maybe(ratio),
    decoderRatio: maybe(ratio),
    info: maybe(info),
  })
  .map((row) => ({ ...row, gpu: '', info: row.info === null ? null : { ...row.info, pid: row.pid } }))

const device: fc.Arbitrary<GpuInfo> = fc.record({
  id: text,
  index: fc.nat(63),
  label: text,
  vendor: fc.constantFrom('nvidia', 'amd'),
  provenance: fc.constantFrom('live', 'simulated', 'replay'),
  name: maybe(text),
  pciBusId: maybe(text),
  minor: maybe(count),
  serial: maybe(text),
  driverVersion: maybe(text),
  cudaVersion: maybe(text),
  libraryVersion: maybe(text),
  architecture: maybe(text),
  computeCapability: maybe(text),
  vbiosVersion: maybe(text),
  computeMode: maybe(count),
  memoryTotalBytes: maybe(bytes),
  powerLimitWatts: maybe(plain),
  powerLimitEnforcedWatts: maybe(plain),
  powerLimitDefaultWatts: maybe(plain),
  powerLimitMinWatts: maybe(plain),
  powerLimitMaxWatts: maybe(plain),
  smClockMaxHertz: maybe(hertz),
  memoryClockMaxHertz: maybe(hertz),
  temperatureSlowdownCelsius: maybe(plain),
  temperatureShutdownCelsius: maybe(plain),
  temperatureMaxCelsius: maybe(plain),
  memoryTemperatureMaxCelsius: maybe(plain),
  pcieGenerationMax: maybe(count),
  pcieWidthMax: maybe(count),
  migMode: fc.constantFrom('enabled', 'disabled', null),
  mig: maybe(fc.record({ parentId: text, gpuInstanceId: count, computeInstanceId: maybe(count), profile: maybe(text) })),
  unifiedMemory: fc.boolean(),
  unavailable: fc.dictionary(
    fc.string({ minLength: 1, maxLength: 8 }).filter((key) => key !== '__proto__'),
    text,
    { maxKeys: 3 },
  ),
})

describe('a recording gives back what was recorded', () => {
  it('of a GPU and its processes', () => {
    const sample = fc.record({
      at,
      readings,
      index: fc.nat(63),
      rows: maybe(fc.array(process, { maxLength: 4 })),
      lost: fc.boolean(),
      gpu: text,
    })
    fc.assert(
      fc.property(sample, device, ({ at, readings, index, rows, lost, gpu }, deviceInfo) => {
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
        const parsed = parseGpuLine(written(gpuRecord(original, { ...deviceInfo, index }, rows ?? [])))
        if (typeof parsed === 'string') throw new Error(parsed)
        expect(parsed.sample).toEqual(original)
        expect(parsed.index).toBe(index)
        expect(parsed.infos).toEqual((rows ?? []).flatMap((row) => (row.info !== null && saysSomething(row.info) ? [row.info] : [])))
      }),
    )
  })

  it('of a device', () => {
    fc.assert(
      fc.property(at, device, (at, info) => {
        expect(parseDeviceLine(written(deviceRecord(info, at)))).toEqual({ kind: 'device', at, device: info })
      }),
    )
  })

  it('of the host', () => {
    const sample: fc.Arbitrary<HostSample> = fc.record({
      kind: fc.constant('host' as const),
      at,
      hostname: text,
      cpuRatio: maybe(ratio),
      cpuCount: maybe(count),
      load1: maybe(plain),
      load5: maybe(plain),
      load15: maybe(plain),
      memoryTotalBytes: maybe(bytes),
      memoryUsedBytes: maybe(bytes),
      memoryAvailableBytes: maybe(bytes),
      swapTotalBytes: maybe(bytes),
      swapUsedBytes: maybe(bytes),
      diskTotalBytes: maybe(bytes),
      diskFreeBytes: maybe(bytes),
      processes: fc.constant([]),
      processesReason: maybe(text),
    })
    fc.assert(
      fc.property(sample, (original) => {
        expect(parseHostLine(written(hostRecord(original)))).toEqual(original)
      }),
    )
  })

  it('of an event', () => {
    const event: fc.Arbitrary<GpuEvent> = fc.record({
      kind: fc.constant('event' as const),
      at,
      gpu: maybe(text),
      event: fc.constantFrom('xid', 'ecc_corrected', 'ecc_uncorrected', 'gpu_unavailable', 'recovery_action', 'lost', 'recovered'),
      code: maybe(count),
      message: text,
      origin: text,
    })
    fc.assert(
      fc.property(event, (original) => {
        expect(parseEventLine(written(eventRecord(original)))).toEqual(original)
      }),
    )
  })

  it('of a training step, NaN and Infinity among its numbers', () => {
    const named = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 8 }).filter((key) => key !== '__proto__'),
      anyNumber,
      { maxKeys: 3 },
    )
    const number: fc.Arbitrary<Reading> = maybe(anyNumber)
    const step: fc.Arbitrary<TrainingStep> = fc.record({
      kind: fc.constant('step' as const),
      at,
      run: text,
      rank: count,
      step: count,
      epoch: number,
      loss: number,
      learningRate: number,
      gradientNorm: number,
      throughputPerSecond: number,
      stepSeconds: number,
      memoryAllocatedBytes: maybe(bytes),
      memoryReservedBytes: maybe(bytes),
      memoryActiveBytes: maybe(bytes),
      memoryInactiveSplitBytes: maybe(bytes),
      memoryPeakAllocatedBytes: maybe(bytes),
      memoryPeakReservedBytes: maybe(bytes),
      allocRetries: maybe(count),
      oomCount: maybe(count),
      phaseSeconds: maybe(named),
      custom: maybe(named),
    })
    fc.assert(
      fc.property(step, (original) => {
        expect(parseStepLine(written(stepRecord(original)))).toEqual(original)
      }),
    )
  })
})

function saysSomething(info: ProcessInfo): boolean {
  return Object.entries(info).some(([key, value]) => key !== 'pid' && value !== null)
}
