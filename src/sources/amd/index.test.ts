import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { GpuEvent, GpuSample, Sample } from '../../core/model.ts'
import type { Source, SourceOptions } from '../../core/source-contract.ts'
import { devicePath, type MachineTree, makeMachine, writeTree } from '../drm/tree.fixture.ts'
import { readTicks, sourceContract, sourceEnv } from '../source.contract.ts'
import { amd } from './index.ts'
import { MI300X_CPX, MI300X_METRICS, RX_7900_XTX } from './trees.fixture.ts'

const FIXTURES = fileURLToPath(new URL('../../../fixtures/amd/', import.meta.url))
const GIBIBYTE = 1024 ** 3
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

/** A copy that a test may change. */
function copyOf(name: string): string {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-amd-'))
  cleanups.push(() => rmSync(root, { recursive: true, force: true }))
  cpSync(join(FIXTURES, name), root, { recursive: true, verbatimSymlinks: true })
  return root
}

function machine(tree: MachineTree): string {
  const { root, remove } = makeMachine(tree)
  cleanups.push(remove)
  return root
}

async function open(root: string, options: SourceOptions = {}): Promise<Source> {
  const source = await amd.open(sourceEnv({ root, options }))
  if (source === null) throw new Error(`no card found below ${root}`)
  cleanups.push(() => void source.close())
  return source
}

const gpus = (samples: readonly Sample[] | undefined) => (samples ?? []).filter((one): one is GpuSample => one.kind === 'gpu')
const events = (samples: readonly Sample[] | undefined) => (samples ?? []).filter((one): one is GpuEvent => one.kind === 'event')

async function readOnce(source: Source, tick = 0): Promise<GpuSample[]> {
  return gpus(await source.read({ at: 1_760_000_000_000 + tick * 1000, monotonicMs: tick * 1000, tick }))
}

for (const [name, count] of [
  ['radeon', 1],
  ['instinct', 2],
  ['apu', 1],
  ['bare', 1],
  ['suspended', 1],
] as const)
  sourceContract(`amd ${name}`, {
    kind: amd,
    gpus: count,
    present: () => sourceEnv({ root: join(FIXTURES, name) }),
    absent: () => sourceEnv({ root: join(FIXTURES, 'nothing-here') }),
  })

const made = makeMachine(MI300X_CPX)
afterAll(() => made.remove())
sourceContract('amd MI300X in partitions', { kind: amd, gpus: 9, present: () => sourceEnv({ root: made.root }) })

describe('an RX 7900 XTX', () => {
  it('has its name, the clock that is set as maximum, and a limit for each temperature', async () => {
    const [info] = (await open(machine(RX_7900_XTX))).devices()
    expect(info).toMatchObject({
      name: 'AMD Radeon RX 7900 XTX',
      architecture: 'gfx1100',
      smClockMaxHertz: 2735e6,
      memoryClockMaxHertz: 1250e6,
      temperatureSlowdownCelsius: 100,
      junctionTemperatureMaxCelsius: 110,
      memoryTemperatureMaxCelsius: 108,
    })
  })

  it('takes its name from the list of libdrm where there is one', async () => {
    const root = machine(RX_7900_XTX)
    writeTree(root, { 'usr/share/libdrm/amdgpu.ids': '1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX (listed)' })
    expect((await open(root)).devices()[0]?.name).toBe('AMD Radeon RX 7900 XTX (listed)')
  })

  it('is held by its power limit, and not by a hottest spot of 78 °C', async () => {
    const root = machine(RX_7900_XTX)
    const source = await open(root)
    const [sample] = await readOnce(source)
    expect(sample).toMatchObject({
      temperatureCelsius: 62,
      junctionTemperatureCelsius: 78,
      memoryTemperatureCelsius: 84,
      clockEventReasons: 0x4,
    })
  })

  it('has no memory temperature where the sensor says 0', async () => {
    const root = machine(RX_7900_XTX)
    writeTree(devicePath(root, '0000:03:00.0'), { 'hwmon/hwmon2/temp3_input': 0 })
    const source = await open(root)
    const [sample] = await readOnce(source)
    expect(sample?.memoryTemperatureCelsius).toBe(null)
    expect(source.devices()[0]?.unavailable.memoryTemperatureCelsius).toContain('reports 0')
  })

  it.each([
    ['asleep and without overdrive', { pp_dpm_sclk: '0: 0Mhz *', pp_od_clk_voltage: '' }, null],
    [
      'with an offset instead of a maximum',
      { pp_dpm_sclk: '0: 500Mhz\n1: 16Mhz *\n2: 2400Mhz', pp_od_clk_voltage: 'OD_SCLK_OFFSET:\n0: -500Mhz\n1: 1000Mhz' },
      2400e6,
    ],
    ['with an offset and no levels', { pp_dpm_sclk: '', pp_od_clk_voltage: 'OD_SCLK_OFFSET:\n0: -500Mhz\n1: 1000Mhz' }, null],
  ] as const)('%s has the maximum that is real', async (_, files, maximum) => {
    const root = machine(RX_7900_XTX)
    writeTree(devicePath(root, '0000:03:00.0'), files)
    expect((await open(root)).devices()[0]?.smClockMaxHertz).toBe(maximum)
  })
})

describe('an MI300X in eight partitions', () => {
  it('shows the card and each partition', async () => {
    const devices = (await open(machine(MI300X_CPX))).devices()
    expect(devices.map(({ label }) => label)).toEqual(['0', '0:0', '0:1', '0:2', '0:3', '0:4', '0:5', '0:6', '0:7'])
    expect(devices[0]).toMatchObject({
      id: '9a7d5c3b1f2e4d60',
      partitioning: 'CPX NPS4',
      architecture: 'gfx942',
      smClockMaxHertz: 2100e6,
      mig: null,
    })
    expect(devices[2]).toMatchObject({
      id: '9a7d5c3b1f2e4d60/1',
      index: 0,
      name: 'AMD Instinct MI300X OAM',
      memoryTotalBytes: 24 * GIBIBYTE,
      mig: { parentId: '9a7d5c3b1f2e4d60', gpuInstanceId: 1, computeInstanceId: null, profile: 'CPX NPS4' },
    })
  })

  it('numbers partitions that the kernel does not', async () => {
    const root = machine(MI300X_CPX)
    for (let node = 1; node <= 8; node++)
      writeTree(join(root, 'sys/class/kfd/kfd/topology/nodes', String(node)), {
        properties: 'location_id 1280\ndomain 0\ngfx_target_version 90402',
      })
    const ids = (await open(root)).devices().map(({ id }) => id)
    expect(new Set(ids).size).toBe(9)
  })

  it('gives each partition its own activity, memory and processes', async () => {
    const [card, first, second, , , , , , last] = await readOnce(await open(machine(MI300X_CPX)))
    expect(card).toMatchObject({
      utilizationRatio: 0.51,
      temperatureCelsius: 58,
      junctionTemperatureCelsius: 58,
      energyJoules: 123_456,
      xcd0ActiveRatio: 1,
      xcd2ActiveRatio: 0.96,
      xcd4ActiveRatio: 0,
      xcd7ActiveRatio: 0.12,
    })
    expect(card?.processes).toBe(null)
    expect(first).toMatchObject({ utilizationRatio: 1, memoryUsedBytes: 20 * GIBIBYTE, memoryFreeBytes: 4 * GIBIBYTE, powerWatts: null })
    expect(first?.processes).toMatchObject([{ pid: 2001, type: 'compute' }])
    expect(second?.processes).toMatchObject([{ pid: 2002 }, { pid: 2003 }])
    expect(last).toMatchObject({ utilizationRatio: 0.12, memoryUsedBytes: 0, processes: [] })
  })

  it('tells throttling and XGMI traffic by what was counted since', async () => {
    const root = machine(MI300X_CPX)
    const source = await open(root)
    expect((await readOnce(source, 0))[0]).toMatchObject({ clockEventReasons: null, xgmiTxBytesPerSecond: null })
    writeTree(devicePath(root, '0000:05:00.0'), { gpu_metrics: MI300X_METRICS({ 32: 2000, 40: 77, 128: 1_003_000n, 192: 2_000_500n }) })
    expect((await readOnce(source, 1))[0]).toMatchObject({
      clockEventReasons: 0x4,
      xgmiTxBytesPerSecond: 500 * 1024,
      xgmiRxBytesPerSecond: 3000 * 1024,
    })
  })

  it('has partitions that sleep, and are lost, with their card', async () => {
    const root = machine(MI300X_CPX)
    const source = await open(root)
    await readOnce(source, 0)
    writeTree(devicePath(root, '0000:05:00.0'), { 'power/runtime_status': 'suspended' })
    const asleep = await readOnce(source, 1)
    expect(asleep.map(({ state, utilizationRatio, processes }) => [state, utilizationRatio, processes])).toEqual(
      Array.from({ length: 9 }, () => ['suspended', null, null]),
    )
    rmSync(devicePath(root, '0000:05:00.0'), { recursive: true })
    const samples = source.read({ at: 2000, monotonicMs: 2000, tick: 2 }) as readonly Sample[]
    expect(gpus(samples).map(({ state }) => state)).toEqual(['lost'])
    expect(source.devices().map(({ label }) => label)).toEqual(['0'])
  })
})

describe('a Radeon', () => {
  it('is described', async () => {
    const [info] = (await open(join(FIXTURES, 'radeon'))).devices()
    expect(info).toMatchObject({
      id: '5f3ac1d09e774b21',
      index: 0,
      label: '0',
      vendor: 'amd',
      provenance: 'live',
      name: 'AMD Radeon RX 7900',
      pciBusId: '00000000:03:00.0',
      minor: 1,
      driverVersion: '6.10.5',
      architecture: 'gfx1100',
      vbiosVersion: '113-D7020100-102',
      memoryTotalBytes: 25753026560,
      powerLimitWatts: 303,
      powerLimitDefaultWatts: 303,
      powerLimitMinWatts: 0,
      powerLimitMaxWatts: 348,
      smClockMaxHertz: 2482e6,
      memoryClockMaxHertz: 1249e6,
      temperatureSlowdownCelsius: 100,
      temperatureShutdownCelsius: 105,
      memoryTemperatureMaxCelsius: 108,
      pcieGenerationMax: 4,
      pcieWidthMax: 16,
      unifiedMemory: false,
      unavailable: {},
    })
  })

  it('is read', async () => {
    const [sample] = await readOnce(await open(join(FIXTURES, 'radeon')))
    expect(sample).toMatchObject({
      state: 'ok',
      stateReason: null,
      slowAt: 1_760_000_000_000,
      utilizationRatio: 0.87,
      memoryUtilizationRatio: 0.41,
      memoryTotalBytes: 25753026560,
      memoryUsedBytes: 9 * GIBIBYTE,
      memoryFreeBytes: 25753026560 - 9 * GIBIBYTE,
      temperatureCelsius: 54,
      memoryTemperatureCelsius: 72,
      powerWatts: 287,
      fanRatio: 0.4,
      graphicsClockHertz: 2304e6,
      smClockHertz: 2304e6,
      memoryClockHertz: 1249e6,
      clockEventReasons: 0x24,
      pcieGeneration: 4,
      pcieWidth: 16,
      pcieReplayCount: 2,
      eccCorrectedVolatileCount: null,
      energyJoules: null,
    })
  })

  it('lists who uses it: clients once, compute memory joined, idle handles left out', async () => {
    const [sample] = await readOnce(await open(join(FIXTURES, 'radeon')))
    const none = { smRatio: null, memoryRatio: null, encoderRatio: null, decoderRatio: null }
    expect(sample?.processes).toEqual([
      { pid: 4242, type: 'compute', memoryUsedBytes: 8 * GIBIBYTE, ...none },
      { pid: 5000, type: 'graphics', memoryUsedBytes: GIBIBYTE / 4, ...none },
    ])
  })

  it('turns engine time into shares of the time between ticks', async () => {
    const root = copyOf('radeon')
    const source = await open(root)
    await readOnce(source, 0)
    const fdinfo = (gfx: number, enc: number) =>
      writeFileSync(
        join(root, 'proc/5000/fdinfo/12'),
        `drm-driver:\tamdgpu\ndrm-client-id:\t80\ndrm-pdev:\t0000:03:00.0\ndrm-resident-vram:\t256 MiB\ndrm-engine-gfx:\t${gfx} ns\ndrm-engine-enc:\t${enc} ns\n`,
      )
    fdinfo(1_250_000_000, 600_000_000)
    const [second] = await readOnce(source, 1)
    expect(second?.processes?.[1]).toMatchObject({ pid: 5000, smRatio: 0.25, encoderRatio: 0.1, decoderRatio: null })
    fdinfo(1_000_000_000, 2_700_000_000)
    const [third] = await readOnce(source, 2)
    expect(third?.processes?.[1]).toMatchObject({ smRatio: 0, encoderRatio: 1 })
  })

  it('notices processes that come and go', async () => {
    const root = copyOf('radeon')
    const source = await open(root)
    await readOnce(source, 0)
    cpSync(join(root, 'proc/5000'), join(root, 'proc/7000'), { recursive: true, verbatimSymlinks: true })
    writeFileSync(
      join(root, 'proc/7000/fdinfo/12'),
      'drm-driver:\tamdgpu\ndrm-client-id:\t99\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t64 KiB\n',
    )
    rmSync(join(root, 'proc/5000'), { recursive: true })
    rmSync(join(root, 'proc/4242'), { recursive: true })
    rmSync(join(root, 'sys/class/kfd/kfd/proc/4242'), { recursive: true })
    const [sample] = await readOnce(source, 3)
    expect(sample?.processes?.map(({ pid, memoryUsedBytes }) => ({ pid, memoryUsedBytes }))).toEqual([
      { pid: 7000, memoryUsedBytes: 65536 },
    ])
  })

  it('keeps a process whose descriptors are not ours to see, with the memory that kfd reports', async () => {
    const root = copyOf('radeon')
    rmSync(join(root, 'proc/5000'), { recursive: true })
    chmodSync(join(root, 'proc/4242/fd'), 0)
    chmodSync(root, 0o755)
    const source = await open(root)
    const isRoot = process.getuid?.() === 0
    if (isRoot) process.seteuid?.(65534)
    try {
      const [sample] = await readOnce(source)
      expect(sample?.processes).toMatchObject([{ pid: 4242, type: 'compute', memoryUsedBytes: 8 * GIBIBYTE, smRatio: null }])
      expect(source.devices()[0]?.unavailable.processes).toContain('run as root')
    } finally {
      if (isRoot) process.seteuid?.(0)
      chmodSync(join(root, 'proc/4242/fd'), 0o755)
    }
  })

  it("does not mix the host's PIDs with a container's", async () => {
    const root = copyOf('radeon')
    mkdirSync(join(root, 'proc/self/ns'), { recursive: true })
    symlinkSync('pid:[4026532999]', join(root, 'proc/self/ns/pid'))
    writeFileSync(join(root, 'sys/class/kfd/kfd/proc/6000/vram_51234'), '4096\n')
    const source = await open(root)
    const [sample] = await readOnce(source)
    expect(sample?.processes?.map(({ pid, type }) => ({ pid, type }))).toEqual([
      { pid: 4242, type: 'compute' },
      { pid: 5000, type: 'graphics' },
    ])
    expect(source.devices()[0]?.unavailable.processes).toContain('--pid=host')
  })

  it('carries slow readings in between and says when they were taken', async () => {
    const root = copyOf('radeon')
    const source = await open(root, { slowIntervalMs: 2000 })
    const devices = source.devices()
    const device = join(root, 'sys/devices/pci0000:00/0000:03:00.0')
    await readOnce(source, 0)
    writeFileSync(join(device, 'current_link_width'), '4\n')
    writeFileSync(join(device, 'hwmon/hwmon4/power1_cap'), '250000000\n')
    writeFileSync(join(device, 'gpu_busy_percent'), '3\n')
    const [carried] = await readOnce(source, 1)
    expect(carried).toMatchObject({ pcieWidth: 16, utilizationRatio: 0.03, slowAt: 1_760_000_000_000 })
    expect(source.devices()).toBe(devices)
    const [fresh] = await readOnce(source, 2)
    expect(fresh).toMatchObject({ pcieWidth: 4, slowAt: 1_760_000_002_000 })
    expect(source.devices()[0]?.powerLimitWatts).toBe(250)
    expect(source.devices()).not.toBe(devices)
  })

  it('says why a file that is there gives no reading, without changing its mind every tick', async () => {
    const root = copyOf('radeon')
    const device = join(root, 'sys/devices/pci0000:00/0000:03:00.0')
    rmSync(join(device, 'mem_busy_percent'))
    mkdirSync(join(device, 'mem_busy_percent'))
    writeFileSync(join(device, 'hwmon/hwmon4/power1_average'), '')
    const source = await open(root)
    const [first] = await readOnce(source, 0)
    expect(first).toMatchObject({ state: 'ok', memoryUtilizationRatio: null, powerWatts: null, utilizationRatio: 0.87 })
    const devices = source.devices()
    expect(devices[0]?.unavailable).toEqual({
      memoryUtilizationRatio: 'mem_busy_percent cannot be read (EISDIR)',
      powerWatts: 'power1_average holds no number',
    })
    for (let tick = 1; tick < 12; tick++) await readOnce(source, tick)
    expect(source.devices()).toBe(devices)
  })
})

describe('an Instinct with two dies', () => {
  it('is numbered by PCI address, not by card', async () => {
    const devices = (await open(join(FIXTURES, 'instinct'))).devices()
    expect(devices.map(({ index, pciBusId, minor }) => ({ index, pciBusId, minor }))).toEqual([
      { index: 0, pciBusId: '00000000:29:00.0', minor: 2 },
      { index: 1, pciBusId: '00000000:2C:00.0', minor: 1 },
    ])
    expect(devices[0]).toMatchObject({
      name: 'AMD INSTINCT MI250 (MCM) OAM AC MBA',
      serial: 'PCB052224-0110',
      driverVersion: '5.15.0-91-generic',
      architecture: 'gfx90a',
      temperatureSlowdownCelsius: 100,
    })
  })

  it('reads the junction where there is no edge, and adds up the errors', async () => {
    const [first, second] = await readOnce(await open(join(FIXTURES, 'instinct')))
    expect(first).toMatchObject({
      temperatureCelsius: 61,
      memoryTemperatureCelsius: 58,
      eccCorrectedVolatileCount: 15,
      eccUncorrectedVolatileCount: 1,
      fanRatio: null,
    })
    expect(first?.processes).toMatchObject([{ pid: 900, type: 'compute', memoryUsedBytes: 51528073216, smRatio: null }])
    expect(second).toMatchObject({
      state: 'ok',
      temperatureCelsius: null,
      powerWatts: null,
      utilizationRatio: 0,
      smClockHertz: 800e6,
      memoryClockHertz: 1600e6,
      eccCorrectedVolatileCount: 0,
    })
    expect(second?.processes).toEqual([])
  })

  it('says that the second die has no sensors', async () => {
    const [, second] = (await open(join(FIXTURES, 'instinct'))).devices()
    expect(Object.keys(second?.unavailable ?? {})).toEqual(
      expect.arrayContaining(['temperatureCelsius', 'powerWatts', 'fanRatio', 'clockEventReasons']),
    )
  })

  it('distinguishes two dies even when they share a number', async () => {
    const root = copyOf('instinct')
    writeFileSync(join(root, 'sys/devices/pci0000:00/0000:2c:00.0/unique_id'), '7b2c9f10d4e85a67\n')
    expect((await open(root)).devices().map(({ id }) => id)).toEqual(['7b2c9f10d4e85a67', '00000000:2C:00.0'])
  })
})

describe('an APU', () => {
  it('gives no sum where a part of it cannot be read', async () => {
    const root = copyOf('apu')
    writeFileSync(join(root, 'sys/devices/pci0000:00/0000:c4:00.0/mem_info_gtt_used'), '\n')
    const source = await open(root)
    const [sample] = await readOnce(source)
    expect(sample).toMatchObject({ memoryUsedBytes: null, memoryFreeBytes: null, memoryTotalBytes: 15.5 * GIBIBYTE })
    expect(source.devices()[0]?.unavailable.memoryUsedBytes).toBe('mem_info_gtt_used holds no number')
  })

  it('counts the memory it borrows', async () => {
    const source = await open(join(FIXTURES, 'apu'))
    const [sample] = await readOnce(source)
    expect(source.devices()[0]).toMatchObject({ unifiedMemory: true, memoryTotalBytes: 15.5 * GIBIBYTE, name: 'AMD Radeon 760M/780M' })
    expect(sample).toMatchObject({ memoryTotalBytes: 15.5 * GIBIBYTE, memoryUsedBytes: 1.375 * GIBIBYTE, powerWatts: 9.007 })
    expect(sample?.processes).toMatchObject([{ pid: 300, type: 'both', memoryUsedBytes: 3072 * 1024 }])
  })
})

describe('a card without sensors', () => {
  it('gives what there is', async () => {
    const source = await open(join(FIXTURES, 'bare'))
    const [sample] = await readOnce(source)
    expect(source.devices()[0]).toMatchObject({ id: '00000000:0A:00.0', name: 'AMD GPU 0x4321', driverVersion: null, serial: null })
    expect(sample).toMatchObject({
      state: 'ok',
      utilizationRatio: 0.05,
      memoryUtilizationRatio: null,
      temperatureCelsius: null,
      smClockHertz: 214e6,
      memoryClockHertz: 300e6,
      pcieGeneration: null,
      pcieWidth: null,
      processes: [],
    })
  })
})

/** Puts a pipe in the place of a file, and says afterwards whether anybody opened it: a writer waits at it, and speaks up whenever one does. */
function trap(path: string): { sprung(): Promise<boolean> } {
  rmSync(path, { recursive: true, force: true })
  execFileSync('mkfifo', [path])
  const writer: ChildProcess = spawn('sh', ['-c', 'trap "" PIPE; while echo opened > "$0"; echo sprung; do :; done 2>/dev/null', path])
  const spoke = new Promise<boolean>((resolve) => writer.stdout?.once('data', () => resolve(true)))
  cleanups.push(() => void writer.kill('SIGKILL'))
  return {
    sprung: async () => Promise.race([spoke, new Promise<boolean>((resolve) => setTimeout(resolve, 300, false))]),
  }
}

describe('what must not be touched', () => {
  it('never reads pcie_bw, in which the kernel sleeps', async () => {
    const root = copyOf('radeon')
    const pcieBandwidth = trap(join(root, 'sys/devices/pci0000:00/0000:03:00.0/pcie_bw'))
    const utilization = trap(join(root, 'sys/devices/pci0000:00/0000:03:00.0/mem_busy_percent'))
    await readTicks(await open(root, { slowIntervalMs: 1000 }), 3)
    expect(await utilization.sprung()).toBe(true)
    expect(await pcieBandwidth.sprung()).toBe(false)
  })

  it('leaves a sleeping card alone', async () => {
    const root = copyOf('suspended')
    const device = join(root, 'sys/devices/pci0000:00/0000:01:00.0')
    const traps = [
      'gpu_busy_percent',
      'mem_info_vram_used',
      'current_link_speed',
      'hwmon/hwmon3/temp1_input',
      'hwmon/hwmon3/power1_cap',
    ].map((name) => trap(join(device, name)))
    const source = await open(root)
    const ticks = await readTicks(source, 3)
    for (const sample of gpus(ticks.flat())) {
      expect(sample).toMatchObject({
        state: 'suspended',
        utilizationRatio: null,
        memoryUsedBytes: null,
        powerWatts: null,
        processes: null,
        slowAt: null,
      })
      expect(sample.stateReason).toContain('asleep')
    }
    expect(source.devices()[0]).toMatchObject({ id: '00aa11bb22cc33dd', name: 'AMD Radeon RX 6700/6750', memoryTotalBytes: 12868124672 })
    expect(events(ticks.flat())).toEqual([])
    for (const one of traps) expect(await one.sprung()).toBe(false)
  })

  it('reads it once it is awake, under the same identity, and stops when it sleeps again', async () => {
    const root = copyOf('suspended')
    const status = join(root, 'sys/devices/pci0000:00/0000:01:00.0/power/runtime_status')
    const source = await open(root)
    const id = source.devices()[0]?.id
    expect((await readOnce(source, 0))[0]).toMatchObject({ state: 'suspended', gpu: id })
    expect(source.devices()[0]?.powerLimitWatts).toBe(null)
    writeFileSync(status, 'active\n')
    expect((await readOnce(source, 1))[0]).toMatchObject({ state: 'ok', gpu: id, temperatureCelsius: 38, pcieGeneration: 1 })
    expect(source.devices()[0]).toMatchObject({ id, powerLimitWatts: 186 })
    writeFileSync(status, 'suspending\n')
    expect((await readOnce(source, 2))[0]).toMatchObject({ state: 'suspended', temperatureCelsius: null })
  })

  it('wakes it when asked to', async () => {
    const source = await open(join(FIXTURES, 'suspended'), { wake: true })
    expect((await readOnce(source))[0]).toMatchObject({ state: 'ok', temperatureCelsius: 38 })
  })
})

/** A device number that no driver has: opening it gives ENODEV, as a dead sysfs file does. */
function makeDeadNode(path: string): void {
  execFileSync('mknod', [path, 'c', '10', '251'], { stdio: 'ignore' })
}

/** Only root may, and not on every file system. */
function canMakeDeadNodes(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-node-'))
  try {
    makeDeadNode(join(folder, 'node'))
    readFileSync(join(folder, 'node'))
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENODEV'
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('a card that is lost', () => {
  it('is said to be lost once, keeps its row, and is found again under another number', async () => {
    const root = copyOf('instinct')
    const device = join(root, 'sys/devices/pci0000:00/0000:29:00.0')
    const link = join(root, 'sys/class/drm/card2')
    const source = await open(root)
    await readOnce(source, 0)
    renameSync(device, `${device}.away`)
    rmSync(link, { recursive: true })
    const lost = [1, 2, 3].map((tick) => source.read({ at: tick * 1000, monotonicMs: tick * 1000, tick }) as readonly Sample[])
    for (const samples of lost) {
      expect(gpus(samples).map(({ state }) => state)).toEqual(['lost', 'ok'])
      expect(gpus(samples)[0]).toMatchObject({ utilizationRatio: null, temperatureCelsius: null, processes: null })
    }
    expect(events(lost.flat())).toMatchObject([{ event: 'lost', gpu: '7b2c9f10d4e85a67', at: 1000, code: null, origin: 'sysfs' }])

    renameSync(`${device}.away`, device)
    mkdirSync(join(root, 'sys/class/drm/card5'))
    symlinkSync('../../../devices/pci0000:00/0000:29:00.0', join(root, 'sys/class/drm/card5/device'))
    const back = [4, 5, 6].map((tick) => source.read({ at: tick * 1000, monotonicMs: tick * 1000, tick }) as readonly Sample[])
    expect(events(back.flat())).toMatchObject([{ event: 'recovered', gpu: '7b2c9f10d4e85a67' }])
    expect(gpus(back.at(-1)).map(({ state }) => state)).toEqual(['ok', 'ok'])
    expect(source.devices().map(({ index, minor }) => ({ index, minor }))).toEqual([
      { index: 0, minor: 5 },
      { index: 1, minor: 1 },
    ])
  })

  it.skipIf(!canMakeDeadNodes())('is lost when its driver says so (ENODEV), though its folder is still there', async () => {
    const root = copyOf('bare')
    const device = join(root, 'sys/devices/pci0000:00/0000:0a:00.0')
    const source = await open(root)
    expect((await readOnce(source, 0))[0]?.state).toBe('ok')
    cpSync(device, join(root, 'kept'), { recursive: true })
    const names = readdirSync(device).filter((name) => !['vendor', 'device', 'power'].includes(name))
    for (const name of names) {
      rmSync(join(device, name))
      makeDeadNode(join(device, name))
    }
    source.close()
    const lost = await readTicks(source, 3)
    expect(gpus(lost.flat()).map(({ state }) => state)).toEqual(['lost', 'lost', 'lost'])
    expect(events(lost.flat())).toMatchObject([{ event: 'lost', message: expect.stringContaining('ENODEV') }])
    for (const name of names) {
      rmSync(join(device, name))
      cpSync(join(root, 'kept', name), join(device, name))
    }
    const later = await source.read({ at: 1_760_000_200_000, monotonicMs: 200_000, tick: 200 })
    expect(gpus(later)[0]).toMatchObject({ state: 'ok', utilizationRatio: 0.05 })
    expect(events(later)).toMatchObject([{ event: 'recovered' }])
  })

  it('takes a card that is plugged in later, after those that are there', async () => {
    const root = copyOf('bare')
    const source = await open(root)
    await readOnce(source, 0)
    cpSync(join(FIXTURES, 'suspended'), root, { recursive: true, verbatimSymlinks: true })
    expect(await readOnce(source, 10)).toMatchObject([{ state: 'ok' }, { state: 'suspended', gpu: '00aa11bb22cc33dd' }])
    expect(source.devices().map(({ index, pciBusId }) => ({ index, pciBusId }))).toEqual([
      { index: 0, pciBusId: '00000000:0A:00.0' },
      { index: 1, pciBusId: '00000000:01:00.0' },
    ])
  })

  it('is in error when nothing of it can be read', async () => {
    const root = copyOf('bare')
    const device = join(root, 'sys/devices/pci0000:00/0000:0a:00.0')
    for (const name of readdirSync(device))
      if (!['vendor', 'device', 'power'].includes(name)) {
        rmSync(join(device, name))
        mkdirSync(join(device, name))
      }
    expect(await readOnce(await open(root))).toMatchObject([
      { state: 'error', stateReason: expect.stringContaining('EISDIR'), utilizationRatio: null, processes: null },
    ])
  })
})

describe('the real machine', () => {
  const present = existsSync('/sys/module/amdgpu')
  it.skipIf(present)('has no AMD card, and that is no error', async () => {
    expect(await amd.open(sourceEnv())).toBe(null)
  })
})
