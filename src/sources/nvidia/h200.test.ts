/** The real driver's answers, recorded on an H200 (test/hardware/capture-nvml.js), through the real source. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { GpuInfo, GpuSample, Sample } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import { sourceEnv } from '../source.contract.ts'
import { FIELD_VALUE_BYTES } from './layouts.ts'
import type { Nvml, NvmlFunction } from './library.ts'
import { NvidiaSource } from './source.ts'
import { SYMBOLS, type SymbolName } from './symbols.ts'

type Argument = { readonly bytes: string } | 'handle' | number | null

interface Capture {
  readonly calls: readonly { readonly name: SymbolName; readonly code: number; readonly arguments: readonly Argument[] }[]
  readonly devices: readonly GpuInfo[]
  readonly samples: readonly (readonly Sample[])[]
}

const NOT_SUPPORTED = 3

function load(name: string): Capture {
  return JSON.parse(readFileSync(new URL(`../../../fixtures/nvml/${name}.json`, import.meta.url), 'utf8')) as Capture
}

const FIELDS_CALL = 'nvmlDeviceGetFieldValues'

/** Zeros at the end are not recorded. */
function padded(hex: string): Buffer {
  const bytes = Buffer.from(hex, 'hex')
  const length = Math.ceil(bytes.length / FIELD_VALUE_BYTES) * FIELD_VALUE_BYTES
  return Buffer.concat([bytes, Buffer.alloc(length - bytes.length)])
}

/** Each field as the driver last gave it before this reading, whatever it was asked for together with. */
function fieldsOf(calls: Capture['calls']): NvmlFunction {
  const answers = new Map<string, Buffer[]>()
  const keyOf = (entry: Buffer) => entry.toString('hex', 0, 8)
  const entriesOf = (bytes: Buffer) =>
    Array.from({ length: bytes.length / FIELD_VALUE_BYTES }, (_, i) => bytes.subarray(i * FIELD_VALUE_BYTES, (i + 1) * FIELD_VALUE_BYTES))
  for (const { name, arguments: given } of calls)
    for (const argument of name === FIELDS_CALL ? given : [])
      if (argument !== null && typeof argument === 'object')
        for (const entry of entriesOf(padded(argument.bytes))) answers.set(keyOf(entry), [...(answers.get(keyOf(entry)) ?? []), entry])
  return (_handle, count, buffer) => {
    for (const entry of entriesOf(
      Buffer.from((buffer as Buffer).buffer, (buffer as Buffer).byteOffset, Number(count) * FIELD_VALUE_BYTES),
    )) {
      const queue = answers.get(keyOf(entry))
      const answer = queue && queue.length > 1 ? queue.shift() : queue?.[0]
      if (answer) entry.set(answer)
      else entry.writeInt32LE(NOT_SUPPORTED, 28)
    }
    return 0
  }
}

/** Answers each call as the driver did, in order; the last answer stands for all that follow. */
function recorded({ calls }: Capture): Nvml {
  const queues = new Map<string, Capture['calls'][number][]>()
  const keyOf = (name: string, values: readonly unknown[]) => `${name} ${values.filter((value) => typeof value === 'number').join(' ')}`
  for (const call of calls) {
    const key = keyOf(call.name, call.arguments)
    queues.set(key, [...(queues.get(key) ?? []), call])
  }
  const answer =
    (name: SymbolName): NvmlFunction =>
    (...values) => {
      const queue = queues.get(keyOf(name, values))
      const call = queue && queue.length > 1 ? queue.shift() : queue?.[0]
      if (!call) return NOT_SUPPORTED
      for (const [position, argument] of call.arguments.entries()) {
        const buffer = values[position]
        if (!(buffer instanceof Uint8Array) || argument === null || typeof argument !== 'object') continue
        buffer.fill(0)
        buffer.set(Buffer.from(argument.bytes, 'hex').subarray(0, buffer.length))
      }
      return call.code
    }
  const names = Object.keys(SYMBOLS) as SymbolName[]
  const functions = Object.fromEntries(names.map((name) => [name, answer(name)])) as Nvml['functions']
  return { path: 'recorded', functions: { ...functions, [FIELDS_CALL]: fieldsOf(calls) }, readFile: () => 0 }
}

function play(capture: Capture): { devices: readonly GpuInfo[]; samples: GpuSample[] } {
  const source = new NvidiaSource(
    sourceEnv({ root: '/nonexistent', options: { slowIntervalMs: 500 }, now: () => 0 }),
    recorded(capture),
    1,
    [],
  )
  const samples = capture.samples.flatMap((_, tick) => source.read({ at: 1_760_000_000_000 + tick * 1000, monotonicMs: tick * 1000, tick }))
  const devices = source.devices()
  source.close()
  return { devices, samples: samples.filter((sample): sample is GpuSample => sample.kind === 'gpu') }
}

describe('recorded answers of an H200', () => {
  it.each(['h200-idle', 'h200-load'])('%s: gives the same samples as on the day', (name) => {
    const capture = load(name)
    // What was added since is null: the driver was not asked for it.
    expect(play(capture).samples).toEqual(capture.samples.flat().map((sample) => ({ ...NO_READINGS, ...sample })))
  })

  it('knows the card', () => {
    expect(play(load('h200-idle')).devices[0]).toMatchObject({
      name: 'NVIDIA H200',
      id: 'GPU-aaaaaaaa-bbbb-cccc-dddd-000000000000',
      pciBusId: '00000000:00:06.0',
      driverVersion: '580.159.04',
      cudaVersion: '13.0',
      architecture: 'Hopper',
      memoryTotalBytes: 143_771 * 1024 ** 2,
      powerLimitWatts: 700,
      smClockMaxHertz: 1980e6,
      temperatureSlowdownCelsius: 89,
      temperatureShutdownCelsius: 95,
      temperatureMaxCelsius: 87,
      migMode: 'disabled',
    })
  })

  it('is idle when it was idle', () => {
    const last = play(load('h200-idle')).samples.at(-1)
    expect(last).toMatchObject({
      state: 'ok',
      utilizationRatio: 0,
      memoryUsedBytes: 0,
      clockEventReasons: 1,
      processes: [],
      fanRatio: null,
    })
    expect(last?.powerWatts).toBeGreaterThan(60)
    expect(last?.powerWatts).toBeLessThan(120)
  })

  it('is busy when it was busy: a bf16 matrix product on 21 GiB, at the power cap', () => {
    const last = play(load('h200-load')).samples.at(-1)
    expect(last?.processes).toHaveLength(1)
    expect(last?.processes?.[0]).toMatchObject({ type: 'compute', memoryUsedBytes: 22_659_727_360 })
    expect(last).toMatchObject({ memoryUsedBytes: 22_668_967_936, smClockHertz: expect.any(Number), clockEventReasons: 4 })
    expect(last?.utilizationRatio).toBeGreaterThan(0.95)
    expect(last?.tensorActiveRatio).toBeGreaterThan(0.8)
    expect(last?.powerWatts).toBeGreaterThan(550)
  })
})
