import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { begin as beginNvml, fake } from '../../../test/fake-nvml/open-fake.ts'
import type { GpuSample, Sample } from '../../core/model.ts'
import { nvidia } from '../nvidia/index.ts'
import { readTicks, sourceContract, sourceEnv } from '../source.contract.ts'
import { releaseOf } from './board.ts'
import { jetson } from './index.ts'
import { AGX_ORIN, AGX_THOR, ORIN_NANO, plant, type Tree } from './trees.fixture.ts'

const KIB = 1024
const roots: string[] = []

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

function planted(tree: Tree) {
  const made = plant(tree)
  roots.push(made.root)
  return made
}

async function begin(tree: Tree) {
  const { root, write } = planted(tree)
  const source = await jetson.open(sourceEnv({ root }))
  if (source === null) throw new Error('the board was not found')
  const gpu = async (): Promise<GpuSample | undefined> => gpuOf((await readTicks(source, 1))[0])
  return { source, root, write, gpu, info: source.devices()[0] }
}

const gpuOf = (samples: readonly Sample[] | undefined) => samples?.find((sample) => sample.kind === 'gpu')
const without = (tree: Tree, part: string): Tree => Object.fromEntries(Object.entries(tree).filter(([path]) => !path.includes(part)))

for (const [name, tree] of [
  ['AGX Orin', AGX_ORIN],
  ['Orin Nano', ORIN_NANO],
  ['AGX Thor', AGX_THOR],
] as const) {
  // Kept to the end of the file: the suite opens them several times.
  const { root } = plant(tree)
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  sourceContract(`jetson ${name}`, {
    kind: jetson,
    gpus: 1,
    present: () => sourceEnv({ root }),
    absent: () => sourceEnv({ root: join(root, 'nothing-here') }),
  })
}

describe('an AGX Orin', () => {
  it('is described', async () => {
    expect((await begin(AGX_ORIN)).info).toMatchObject({
      id: 'tegra234-1420921055981',
      vendor: 'jetson',
      name: 'NVIDIA Jetson AGX Orin Developer Kit',
      serial: '1420921055981',
      driverVersion: '36.4.3',
      architecture: 'Ampere',
      memoryTotalBytes: 64_325_272 * KIB,
      smClockMaxHertz: 1_300_500_000,
      temperatureShutdownCelsius: 104.5,
      temperatureSlowdownCelsius: 99,
      unifiedMemory: true,
    })
  })

  it('is read: load in thousandths, milli-units, volts by amperes, the memory of the host', async () => {
    expect(await (await begin(AGX_ORIN)).gpu()).toMatchObject({
      state: 'ok',
      utilizationRatio: 0.735,
      memoryUsedBytes: 20_000_000 * KIB,
      memoryTotalBytes: 64_325_272 * KIB,
      memoryFreeBytes: 44_325_272 * KIB,
      temperatureCelsius: 47.625,
      powerWatts: 5.166,
      modulePowerWatts: null,
      fanRatio: 0.2,
      smClockHertz: 816_000_000,
      graphicsClockHertz: 816_000_000,
      processes: null,
    })
  })

  it('is followed from tick to tick', async () => {
    const { gpu, write } = await begin(AGX_ORIN)
    await gpu()
    write('sys/class/devfreq/17000000.gpu/device/load', '1001\n')
    write('proc/meminfo', 'MemTotal: 1000 kB\nMemAvailable: 100 kB\n')
    expect(await gpu()).toMatchObject({ utilizationRatio: 1, memoryUsedBytes: 900 * KIB })
  })

  it.each([
    ['sys/devices/gpu.0/load', 'JetPack 5'],
    ['sys/devices/platform/gpu.0/load', 'JetPack 6'],
  ])('has its load in %s under %s', async (path) => {
    const { gpu } = await begin({ ...without(AGX_ORIN, '/load'), [path]: '250\n' })
    expect((await gpu())?.utilizationRatio).toBe(0.25)
  })
})

describe('other boards', () => {
  it('tell the power of the whole module beside that of the GPU', async () => {
    expect(await (await begin(ORIN_NANO)).gpu()).toMatchObject({ powerWatts: 1.042, modulePowerWatts: 5.208 })
  })

  it('a Thor has clocks by domain and a monitor of the input, but no load', async () => {
    const { gpu, info } = await begin(AGX_THOR)
    expect(await gpu()).toMatchObject({
      ...{ utilizationRatio: null, smClockHertz: 1_575_000_000, temperatureCelsius: 41.25, powerWatts: 5.527, modulePowerWatts: 38.5 },
    })
    expect(info).toMatchObject({ id: 'tegra264', architecture: 'Blackwell', serial: null, driverVersion: '38.2.0' })
    expect(info?.unavailable.utilizationRatio).toContain('load')
  })

  it.each(['17000000.gp10b', '17000000.gv11b', '17000000.ga10b', '57000000.gpu'])('knows the GPU %s', async (name) => {
    const tree = Object.fromEntries(Object.entries(AGX_ORIN).map(([path, text]) => [path.replace('17000000.gpu', name), text]))
    expect((await (await begin(tree)).gpu())?.smClockHertz).toBe(816_000_000)
  })

  it('without sensors is read all the same, and says what is missing', async () => {
    const { gpu, info } = await begin(without(without(AGX_ORIN, 'hwmon'), 'thermal'))
    expect(await gpu()).toMatchObject({ state: 'ok', utilizationRatio: 0.735, temperatureCelsius: null, powerWatts: null, fanRatio: null })
    expect(Object.keys(info?.unavailable ?? {})).toEqual(expect.arrayContaining(['temperatureCelsius', 'powerWatts', 'processes']))
  })
})

describe('a Thor whose GPU has the driver of the large cards', () => {
  const THOR = {
    ...AGX_THOR,
    'proc/driver/nvidia/gpus/0000:01:00.0/information': 'Model: \t\t NVIDIA Thor\nGPU UUID: \t GPU-a0000000-0000-4000-8000-000000000000\n',
  }

  it('is left to NVML, and completed from the files of the board', async () => {
    expect(await jetson.open(sourceEnv({ root: planted(THOR).root }))).toBe(null)
    const silent = [
      'nvmlDeviceGetMemoryInfo_v2',
      'nvmlDeviceGetMemoryInfo',
      'nvmlDeviceGetTemperature',
      'nvmlDeviceGetClockInfo',
      'nvmlDeviceGetPowerUsage',
    ]
    const { ticker } = await beginNvml({
      script: { gpus: 1, name: 'NVIDIA Thor', util: 42, field_ret: '186:3', ret: silent.map((name) => `${name}:3`) },
      files: THOR,
    })
    await ticker.tick()
    expect(await ticker.gpu()).toMatchObject({
      ...{ utilizationRatio: 0.42, temperatureCelsius: 41.25, powerWatts: 5.527, modulePowerWatts: 38.5, smClockHertz: 1_575_000_000 },
      ...{ memoryTotalBytes: 128_811_428 * KIB, memoryUsedBytes: 10_000_000 * KIB },
    })
    expect(ticker.device()).toMatchObject({ vendor: 'nvidia', unifiedMemory: true })
  })

  it('does not complete a card that is plugged into it', async () => {
    const { ticker } = await beginNvml({
      script: { gpus: 1, name: 'NVIDIA RTX 6000 Ada', ret: ['nvmlDeviceGetTemperature:3'] },
      files: AGX_ORIN,
    })
    expect((await ticker.gpu()).temperatureCelsius).toBe(null)
  })
})

describe('an Orin that NVML lists by name alone', () => {
  it('is left to the files of the board', async () => {
    expect(await nvidia.open(fake({ script: { gpus: 1, name: 'Orin (nvgpu)' }, files: AGX_ORIN }).env)).toBe(null)
    const { source } = await beginNvml({
      script: { gpus: 2, 'gpu0.name': 'Orin (nvgpu)', 'gpu1.name': 'NVIDIA RTX A6000' },
      files: AGX_ORIN,
    })
    expect(source.devices().map(({ name }) => name)).toEqual(['NVIDIA RTX A6000'])
  })
})

describe('what is no Jetson', () => {
  it.each([
    ['a board of somebody else', { ...AGX_ORIN, 'proc/device-tree/compatible': 'raspberrypi,5-model-b\0brcm,bcm2712\0' }],
    ['a Jetson without a GPU in the kernel', without(AGX_ORIN, '17000000.gpu')],
    ['a machine without a device tree', without(AGX_ORIN, 'device-tree')],
  ])('%s is nothing to watch', async (_, tree) => {
    expect(await jetson.open(sourceEnv({ root: planted(tree).root }))).toBe(null)
  })
})

describe('a GPU that goes away', () => {
  it('is lost, said once, and back when its files are', async () => {
    const { source, root, write } = await begin(AGX_ORIN)
    const events = async () => (await readTicks(source, 1))[0]?.flatMap((sample) => (sample.kind === 'event' ? sample.event : []))
    expect(await events()).toEqual([])
    for (const folder of ['devfreq', 'thermal']) rmSync(join(root, 'sys/class', folder), { recursive: true })
    expect(await events()).toEqual(['lost'])
    const [samples] = await readTicks(source, 1)
    expect(samples).toMatchObject([{ kind: 'gpu', state: 'lost', memoryUsedBytes: null }])
    write('sys/class/devfreq/17000000.gpu/cur_freq', '1\n')
    expect(await events()).toEqual(['recovered'])
  })
})

describe('the release of Jetson Linux', () => {
  it.each([
    ['# R35 (release), REVISION: 5.0, GCID: 1', '35.5.0'],
    ['something else', null],
    ['', null],
  ])('of %j is %j', (text, release) => {
    expect(releaseOf(text)).toBe(release)
  })
})
