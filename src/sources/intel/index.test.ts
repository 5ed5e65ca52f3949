import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { GpuSample, Sample } from '../../core/model.ts'
import type { Source, SourceOptions } from '../../core/source-contract.ts'
import { devicePath, type MachineTree, makeMachine, type Tree, writeTree } from '../drm/tree.fixture.ts'
import { readTicks, sourceContract, sourceEnv } from '../source.contract.ts'
import { intel } from './index.ts'
import { ARC_A380, ARC_B580, i915Client, MAX_1550, UHD_770, xeClient } from './trees.fixture.ts'

const GIBIBYTE = 1024 ** 3
const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function machine(tree: MachineTree): string {
  const { root, remove } = makeMachine(tree)
  cleanups.push(remove)
  return root
}

async function open(root: string, options: SourceOptions = {}): Promise<Source> {
  const source = await intel.open(sourceEnv({ root, options }))
  if (source === null) throw new Error(`no card found below ${root}`)
  cleanups.push(() => void source.close())
  return source
}

const gpus = (samples: readonly Sample[]) => samples.filter((one): one is GpuSample => one.kind === 'gpu')

async function readOnce(source: Source, tick = 0): Promise<GpuSample> {
  const [sample] = gpus(await source.read({ at: 1_760_000_000_000 + tick * 1000, monotonicMs: tick * 1000, tick }))
  if (sample === undefined) throw new Error('no sample')
  return sample
}

/** As another user would see them. */
async function asNobody<T>(use: () => Promise<T>): Promise<T> {
  const isRoot = process.getuid?.() === 0
  if (isRoot) process.seteuid?.(65534)
  try {
    return await use()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

for (const [name, tree] of Object.entries({ ARC_B580, UHD_770, ARC_A380, MAX_1550 })) {
  const made = makeMachine(tree)
  afterAll(() => made.remove())
  sourceContract(`intel ${name}`, {
    kind: intel,
    gpus: 1,
    present: () => sourceEnv({ root: made.root }),
    absent: () => sourceEnv({ root: join(made.root, 'nothing-here') }),
  })
}

describe('an Arc B580 with xe', () => {
  const ADDRESS = '0000:03:00.0'

  it('is described', async () => {
    const [info] = (await open(machine(ARC_B580))).devices()
    expect(info).toMatchObject({
      id: '00000000:03:00.0',
      vendor: 'intel',
      name: 'Intel Arc B580',
      driverVersion: 'xe 6.17.0',
      memoryTotalBytes: 12 * GIBIBYTE,
      unifiedMemory: false,
      powerLimitWatts: 190,
      powerLimitDefaultWatts: 190,
      smClockMaxHertz: 2850e6,
      temperatureSlowdownCelsius: 100,
      temperatureShutdownCelsius: 110,
      memoryTemperatureMaxCelsius: 95,
    })
  })

  it('is read: sensors at once, power and activity from the second tick on', async () => {
    const root = machine(ARC_B580)
    const source = await open(root)
    expect(await readOnce(source, 0)).toMatchObject({
      state: 'ok',
      utilizationRatio: null,
      powerWatts: null,
      temperatureCelsius: 61,
      memoryTemperatureCelsius: 66,
      fanRpm: 1116,
      fanRatio: null,
      graphicsClockHertz: 2700e6,
      smClockHertz: 2700e6,
      videoClockHertz: 0,
      clockEventReasons: 0x4,
      energyJoules: 5000,
      memoryTotalBytes: 12 * GIBIBYTE,
      memoryUsedBytes: 4.25 * GIBIBYTE,
    })
    writeTree(devicePath(root, ADDRESS), { 'hwmon/hwmon4/energy1_input': 5_180_000_000 })
    const busy = xeClient(40, ADDRESS, { rcs: 0, ccs: 1_800_000, vcs: 400_000, total: 10_000_000 }, '4096 MiB')
    writeTree(root, {
      'proc/3100/fdinfo/1': busy,
      'proc/3100/fdinfo/2': busy,
      'proc/3200/fdinfo/0': xeClient(41, ADDRESS, { rcs: 150_000, ccs: 0, vcs: 0, total: 10_000_000 }, '262144 KiB'),
    })
    const second = await readOnce(source, 1)
    expect(second).toMatchObject({ powerWatts: 180, decoderRatio: 0.2, encoderRatio: null })
    expect(second.utilizationRatio).toBeCloseTo(0.9)
    const none = { memoryRatio: null, encoderRatio: null }
    expect(second.processes).toEqual([
      { pid: 3100, type: 'compute', memoryUsedBytes: 4 * GIBIBYTE, smRatio: 0.8, decoderRatio: 0.2, ...none },
      { pid: 3200, type: 'graphics', memoryUsedBytes: GIBIBYTE / 4, smRatio: 0.1, decoderRatio: 0, ...none },
    ])
  })

  it('takes its link from the bridge on its card', async () => {
    const root = machine(ARC_B580)
    const bridges = join(root, 'sys/devices/pci0000:00/0000:01:00.0')
    const moved = join(bridges, '0000:02:01.0', ADDRESS)
    writeTree(bridges, { current_link_speed: '16.0 GT/s PCIe', current_link_width: 8, max_link_speed: '16.0 GT/s PCIe', max_link_width: 8 })
    mkdirSync(join(bridges, '0000:02:01.0'))
    renameSync(devicePath(root, ADDRESS), moved)
    rmSync(join(root, 'sys/class/drm/card1/device'))
    symlinkSync(moved, join(root, 'sys/class/drm/card1/device'))
    const source = await open(root)
    expect(await readOnce(source)).toMatchObject({ pcieGeneration: 4, pcieWidth: 8 })
    expect(source.devices()[0]).toMatchObject({ pcieGenerationMax: 4, pcieWidthMax: 8 })
  })

  it('does not believe the slowest link there is', async () => {
    expect(await readOnce(await open(machine(ARC_B580)))).toMatchObject({ pcieGeneration: null, pcieWidth: null })
  })

  it.each([
    [{ status: 0, reason_pl1: 1 }, 0],
    [{ reason_pl1: 0, reason_thermal: 1 }, 0x20],
    [{ reason_pl1: 0, reason_prochot: 1 }, 0x48],
    [{ reason_pl1: 0, reason_vr_tdc: 1, reason_pl2: 1 }, 0xc],
    [{ reason_pl1: 0, reason_soc_avg_thermal: 1 }, 0x20],
    [{ reason_pl1: 0 }, 0],
  ] satisfies [Tree, number][])('is held down by %j', async (files, reasons) => {
    const root = machine(ARC_B580)
    writeTree(join(devicePath(root, ADDRESS), 'tile0/gt0/freq0/throttle'), files)
    expect((await readOnce(await open(root))).clockEventReasons).toBe(reasons)
  })

  it('gives without root what can be had, and says what is missing', async () => {
    const root = machine(ARC_B580)
    chmodSync(root, 0o755)
    chmodSync(join(root, 'proc/3200/fd'), 0)
    const source = await open(root)
    await asNobody(async () => {
      await readOnce(source, 0)
      writeTreeAsRoot(join(devicePath(root, ADDRESS), 'tile0/gt0'), { 'gtidle/idle_residency_ms': 500_250 })
      const sample = await readOnce(source, 1)
      expect(sample).toMatchObject({ utilizationRatio: 0.75, memoryUsedBytes: null, memoryTotalBytes: 12 * GIBIBYTE, decoderRatio: null })
      expect(sample.processes).toMatchObject([{ pid: 3100, memoryUsedBytes: 4 * GIBIBYTE }])
      expect(source.devices()[0]?.unavailable.processes).toMatch(/run as root.*not asleep/)
    })
    chmodSync(join(root, 'proc/3200/fd'), 0o755)
  })

  it('sleeps undisturbed, and is lost and found', async () => {
    const root = machine(ARC_B580)
    const source = await open(root)
    writeTree(devicePath(root, ADDRESS), { 'power/runtime_status': 'suspended' })
    expect(await readOnce(source, 0)).toMatchObject({
      state: 'suspended',
      temperatureCelsius: null,
      utilizationRatio: null,
      processes: null,
    })
    writeTree(devicePath(root, ADDRESS), { 'power/runtime_status': 'active' })
    expect(await readOnce(source, 1)).toMatchObject({ state: 'ok', temperatureCelsius: 61 })
    renameSync(devicePath(root, ADDRESS), join(root, 'away'))
    expect(await readOnce(source, 2)).toMatchObject({ state: 'lost', temperatureCelsius: null })
    renameSync(join(root, 'away'), devicePath(root, ADDRESS))
    expect(await readOnce(source, 5)).toMatchObject({ state: 'ok', temperatureCelsius: 61 })
  })
})

/** The test writes as root, whoever reads. */
function writeTreeAsRoot(folder: string, tree: Tree): void {
  const euid = process.geteuid?.()
  if (process.getuid?.() === 0) process.seteuid?.(0)
  writeTree(folder, tree)
  if (process.getuid?.() === 0 && euid !== undefined) process.seteuid?.(euid)
}

describe('graphics inside a processor with i915', () => {
  it("has the host's memory, and says so", async () => {
    const source = await open(machine(UHD_770))
    expect(source.devices()[0]).toMatchObject({
      name: 'Intel UHD Graphics 770',
      driverVersion: 'i915 6.17.0',
      unifiedMemory: true,
      memoryTotalBytes: 32_768_000 * 1024,
      smClockMaxHertz: 1550e6,
    })
    expect(await readOnce(source)).toMatchObject({
      memoryTotalBytes: 32_768_000 * 1024,
      memoryUsedBytes: (32_768_000 - 20_480_000) * 1024,
      graphicsClockHertz: 700e6,
      clockEventReasons: 0,
      temperatureCelsius: null,
      powerWatts: null,
      pcieGeneration: null,
    })
    expect(Object.keys(source.devices()[0]?.unavailable ?? {})).toEqual(
      expect.arrayContaining(['temperatureCelsius', 'powerWatts', 'fanRatio']),
    )
  })

  it('turns engine time into shares: of the card and of each process', async () => {
    const root = machine(UHD_770)
    const source = await open(root)
    await readOnce(source, 0)
    writeTree(root, {
      'proc/1500/fdinfo/0': i915Client(3, '0000:00:02.0', 2_300_000_000, 0),
      'proc/1600/fdinfo/0': i915Client(7, '0000:00:02.0', 600_000_000, 1_100_000_000),
    })
    const second = await readOnce(source, 1)
    expect(second.utilizationRatio).toBeCloseTo(0.4)
    expect(second.decoderRatio).toBeCloseTo(0.5)
    expect(second.processes).toMatchObject([
      { pid: 1500, type: 'graphics', smRatio: 0.3, memoryUsedBytes: 80 * 1024 ** 2 },
      { pid: 1600, type: 'graphics', smRatio: 0.1, decoderRatio: 0.5 },
    ])
  })

  it('is idle, not unknown, when no process uses it', async () => {
    const root = machine({ ...UHD_770, processes: [] })
    expect(await readOnce(await open(root))).toMatchObject({ utilizationRatio: 0, processes: [] })
  })
})

describe('other cards', () => {
  it('reads an Arc A380 of an older i915', async () => {
    const root = machine(ARC_A380)
    const source = await open(root)
    expect(source.devices()[0]).toMatchObject({
      name: 'Intel Arc A380',
      memoryTotalBytes: 6 * GIBIBYTE,
      powerLimitWatts: null,
      powerLimitDefaultWatts: 55,
      smClockMaxHertz: 2450e6,
    })
    expect(await readOnce(source)).toMatchObject({
      memoryUsedBytes: GIBIBYTE,
      memoryFreeBytes: 5 * GIBIBYTE,
      energyJoules: 900,
      clockEventReasons: null,
    })
  })

  it('adds up the tiles of a Max 1550', async () => {
    const source = await open(machine(MAX_1550))
    expect(source.devices()[0]).toMatchObject({ name: 'Intel Data Center GPU Max 1550', memoryTotalBytes: 128 * GIBIBYTE })
    expect(await readOnce(source)).toMatchObject({ memoryUsedBytes: 5 * GIBIBYTE, smClockHertz: 1600e6, clockEventReasons: 0x68 })
  })

  it('names a card that it does not know by its number', async () => {
    const root = machine(ARC_A380)
    writeTree(devicePath(root, '0000:04:00.0'), { device: '0x1234' })
    expect((await open(root)).devices()[0]?.name).toBe('Intel GPU 0x1234')
  })

  it('leaves cards of other vendors alone', async () => {
    const root = machine(ARC_A380)
    writeTree(devicePath(root, '0000:04:00.0'), { vendor: '0x1002' })
    expect(await intel.open(sourceEnv({ root }))).toBe(null)
  })

  it('keeps a counter that starts anew from becoming a reading', async () => {
    const root = machine(ARC_B580)
    const source = await open(root)
    await readOnce(source, 0)
    writeTree(devicePath(root, '0000:03:00.0'), { 'hwmon/hwmon4/energy1_input': 5 })
    expect((await readOnce(source, 1)).powerWatts).toBe(null)
    expect(gpus((await readTicks(source, 2)).flat()).every(({ powerWatts }) => powerWatts === null || powerWatts >= 0)).toBe(true)
  })
})
