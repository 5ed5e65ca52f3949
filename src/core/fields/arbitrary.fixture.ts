/** Anything that the tables of fields allow, for property tests: a new row is tested with the others. */
import fc from 'fast-check'
import type { GpuInfo, GpuProcess, GpuReadings, HostSample, ProcessInfo, TrainingStep } from '../model.ts'
import type { ColumnsOf, ColumnTable, Fact, FactsOf, FactTable, Scale } from './field.ts'
import { GPU_INFO, GPU_READINGS } from './gpu.ts'
import { HOST_READINGS } from './host.ts'
import { GPU_PROCESS_TYPES, PROCESS_INFO, PROCESS_SHARES } from './process.ts'
import { STEP_FIGURES } from './step.ts'

export const anyTime = fc.integer({ min: 0, max: 253_402_300_799_999 })
export const anyText = fc.string({ unit: 'grapheme', maxLength: 20 })
export const anyCount = fc.nat()
export const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })

const plain = fc.double({ min: 0, max: 1e12, noNaN: true }).map((value) => value + 0)
const bytes = fc.integer({ min: 0, max: 2 ** 50 })
const key = fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== '__proto__')
const anyNumber = fc.double().map((value) => (Object.is(value, -0) ? 0 : value))
const named = maybe(fc.dictionary(key, anyNumber, { maxKeys: 3 }))

const OF_SCALE: Readonly<Record<Scale, fc.Arbitrary<number | string>>> = {
  same: plain,
  any: anyNumber,
  percent: fc.integer({ min: 0, max: 64_000_000 }).map((millionths) => millionths / 1e6),
  mebibytes: bytes,
  megahertz: fc.integer({ min: 0, max: 10 ** 11 }),
  time: anyTime,
  text: anyText,
}

function columns<Table extends ColumnTable>(table: Table): fc.Arbitrary<ColumnsOf<Table>> {
  return fc.record(Object.fromEntries(Object.entries(table).map(([field, { scale }]) => [field, maybe(OF_SCALE[scale])]))) as never
}

function facts<Table extends FactTable>(table: Table): fc.Arbitrary<FactsOf<Table>> {
  return fc.record(Object.fromEntries(Object.entries<Fact>(table).map(([field, fact]) => [field, anyFact(fact)]))) as never
}

function anyFact(fact: Fact): fc.Arbitrary<unknown> {
  switch (fact.is) {
    case 'name':
      return anyText
    case 'count':
      return anyCount
    case 'reading':
      return maybe(plain)
    case 'text':
      return maybe(anyText)
    case 'flag':
      return fc.boolean()
    case 'texts':
      return fc.dictionary(key, anyText, { maxKeys: 3 })
    case 'choice':
      return fact.missing === undefined ? fc.constantFrom(...fact.of, null) : fc.constantFrom(...fact.of)
    case 'object':
      return maybe(facts(fact.of))
    case 'list':
      return fc.array(facts(fact.of), { maxLength: 2 })
  }
}

export const anyGpuInfo: fc.Arbitrary<GpuInfo> = facts(GPU_INFO)

export const anyReadings: fc.Arbitrary<GpuReadings> = columns(GPU_READINGS)

export const anyProcessInfo: fc.Arbitrary<ProcessInfo> = fc
  .record({ pid: fc.integer({ min: 1, max: 2 ** 22 }), who: columns(PROCESS_INFO) })
  .map(({ pid, who }) => ({ pid, command: null, ...who }))

export const anyGpuProcess: fc.Arbitrary<GpuProcess> = fc
  .record({ pid: anyCount, type: fc.constantFrom(...GPU_PROCESS_TYPES), memoryUsedBytes: maybe(bytes), shares: columns(PROCESS_SHARES) })
  .map(({ shares, ...process }) => ({ ...process, ...shares }))

export const anyHostSample: fc.Arbitrary<HostSample> = fc
  .record({ at: anyTime, hostname: anyText, readings: columns(HOST_READINGS), processesReason: maybe(anyText) })
  .map(({ readings, ...host }) => ({ kind: 'host', ...host, ...readings, processes: [] }))

export const anyStep: fc.Arbitrary<TrainingStep> = fc
  .record({
    at: anyTime,
    run: anyText,
    rank: anyCount,
    step: anyCount,
    figures: columns(STEP_FIGURES),
    phaseSeconds: named,
    custom: named,
  })
  .map(({ figures, ...step }) => ({ kind: 'step', ...step, ...figures }))
