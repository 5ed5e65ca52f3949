/** The real driver's answers, recorded on an H200 (test/hardware/capture-nvml.js), through the real source. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { GpuInfo, GpuSample, Sample } from '../../core/model.ts'
import { sourceEnv } from '../source.contract.ts'
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
  return { path: 'recorded', functions, readFile: () => 0 }
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
    expect(play(capture).samples).toEqual(capture.samples.flat())
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
