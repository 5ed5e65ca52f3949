import { describe, expect, it } from 'vitest'
import { begin, fake } from '../../../test/fake-nvml/open-fake.ts'
import { sourceContract, sourceEnv } from '../source.contract.ts'
import { nvidia } from './index.ts'

for (const gpus of [1, 8, 64]) {
  sourceContract(`nvidia, ${gpus} GPUs`, {
    kind: nvidia,
    gpus,
    present: () => fake({ script: { gpus, processes: 3, graphics: 1, freeze: 1 } }).env,
    absent: () => sourceEnv({ root: '/nonexistent' }),
  })
}

sourceContract('nvidia, old driver', {
  kind: nvidia,
  gpus: 2,
  present: () => fake({ variant: 'old' }).env,
})

sourceContract('nvidia, MIG', {
  kind: nvidia,
  gpus: 5,
  present: () => fake({ script: { gpus: 2, 'gpu0.mig': 3 } }).env,
})

describe('static facts', () => {
  it('reads identity, versions and limits once', async () => {
    const { ticker, counts } = await begin({
      script: { gpus: 1, 'gpu0.power_limit': 350500, power_limit_enforced: 340000, serial: '77', compute_mode: 3 },
    })
    await ticker.tick()
    await ticker.tick()
    expect(ticker.device()).toMatchObject({
      id: 'GPU-fa4e0000-0000-4000-8000-000000000000',
      index: 0,
      label: '0',
      vendor: 'nvidia',
      provenance: 'live',
      name: 'NVIDIA H200',
      pciBusId: '00000000:10:00.0',
      minor: 0,
      serial: '77',
      driverVersion: '580.159.04',
      cudaVersion: '13.0',
      libraryVersion: '13.580.159.04',
      architecture: 'Hopper',
      computeCapability: '9.0',
      vbiosVersion: '96.00.A5.00.03',
      computeMode: 3,
      memoryTotalBytes: 143771 * 1024 * 1024,
      powerLimitWatts: 350.5,
      powerLimitEnforcedWatts: 340,
      powerLimitDefaultWatts: 700,
      powerLimitMinWatts: 200,
      powerLimitMaxWatts: 700,
      smClockMaxHertz: 1980e6,
      memoryClockMaxHertz: 3201e6,
      temperatureShutdownCelsius: 95,
      temperatureSlowdownCelsius: 89,
      temperatureMaxCelsius: 87,
      memoryTemperatureMaxCelsius: 95,
      pcieGenerationMax: 5,
      pcieWidthMax: 16,
      migMode: 'disabled',
      mig: null,
      unifiedMemory: false,
    })
    expect((await counts()).nvmlDeviceGetMaxClockInfo).toBe(2)
  })

  it('says that a margin is no temperature where only T.Limit is given', async () => {
    const { ticker } = await begin({ script: { gpus: 1, ret: ['nvmlDeviceGetTemperatureThreshold:3'] } })
    const { temperatureSlowdownCelsius, temperatureShutdownCelsius, unavailable } = ticker.device()
    expect([temperatureSlowdownCelsius, temperatureShutdownCelsius]).toEqual([null, null])
    expect(unavailable.temperatureSlowdownCelsius).toContain('T.Limit -2 °C')
    expect(unavailable.temperatureShutdownCelsius).toContain('T.Limit -8 °C')
    expect(unavailable.memoryTemperatureMaxCelsius).toBe('not supported by this GPU')
  })

  it('names an architecture that it does not know as the reason, not as a name', async () => {
    const { ticker } = await begin({ script: { gpus: 1, arch: 99 } })
    expect(ticker.device().architecture).toBe(null)
    expect(ticker.device().unavailable.architecture).toContain('99')
  })
})

describe('readings', () => {
  it('come in base units', async () => {
    const { ticker } = await begin({
      script: {
        gpus: 1,
        util: 87,
        mem_util: 41,
        temp: 66,
        mem_temp: 71,
        power: 512345,
        energy: 9876543,
        fan: 55,
        sm_clock: 1700,
        graphics_clock: 1710,
        mem_clock: 3200,
        video_clock: 1500,
        pstate: 2,
        reasons: 0x24,
        encoder: 7,
        decoder: 9,
        pcie_gen: 4,
        pcie_width: 8,
        replay: 12,
        memory_used: 1_000_000,
        ecc_corrected: 5,
        ecc_uncorrected: 6,
        ecc_corrected_aggregate: 7,
        ecc_uncorrected_aggregate: 8,
        recovery_action: 1,
        fabric_state: 2,
        field: '74:2500000000,75:1500000000,142:1,143:2,144:1,145:0,29:3,30:4,31:1',
      },
    })
    expect(await ticker.gpu()).toMatchObject({
      state: 'ok',
      utilizationRatio: 0.87,
      memoryUtilizationRatio: 0.41,
      temperatureCelsius: 66,
      memoryTemperatureCelsius: 71,
      powerWatts: 512.345,
      energyJoules: 9876.543,
      fanRatio: 0.55,
      smClockHertz: 1700e6,
      graphicsClockHertz: 1710e6,
      memoryClockHertz: 3200e6,
      videoClockHertz: 1500e6,
      performanceState: 2,
      clockEventReasons: 0x24,
      encoderRatio: 0.07,
      decoderRatio: 0.09,
      pcieGeneration: 4,
      pcieWidth: 8,
      pcieReplayCount: 12,
      memoryUsedBytes: 1_000_000,
      memoryReservedBytes: 616 * 1024 * 1024,
      eccCorrectedVolatileCount: 5,
      eccUncorrectedVolatileCount: 6,
      eccCorrectedAggregateCount: 7,
      eccUncorrectedAggregateCount: 8,
      powerViolationSeconds: 2.5,
      thermalViolationSeconds: 1.5,
      remappedCorrectableRows: 1,
      remappedUncorrectableRows: 2,
      remapPending: 1,
      remapFailure: 0,
      retiredPagesSingleBit: 3,
      retiredPagesDoubleBit: 4,
      retiredPagesPending: 1,
      recoveryAction: 1,
      fabricState: 2,
    })
  })

  it('turns counters into rates without swapping the directions, and gives null when one goes backwards', async () => {
    const { ticker, script } = await begin({ variant: 'no-gpm', script: { gpus: 1, field: '197:1000,198:5000,138:10,139:100' } })
    const before = await ticker.gpu()
    expect([before.pcieTxBytesPerSecond, before.nvlinkTxBytesPerSecond]).toEqual([null, null])
    script.update({ field: '197:3000,198:9000,138:20,139:140' })
    expect(await ticker.gpu(2000)).toMatchObject({
      pcieTxBytesPerSecond: 1000,
      pcieRxBytesPerSecond: 2000,
      nvlinkTxBytesPerSecond: 5 * 1024,
      nvlinkRxBytesPerSecond: 20 * 1024,
    })
    script.update({ field: '197:100,198:9000,138:20,139:140' })
    expect(await ticker.gpu()).toMatchObject({ pcieTxBytesPerSecond: null, pcieRxBytesPerSecond: 0 })
  })

  it('counts all links together', async () => {
    const { ticker } = await begin({ variant: 'no-gpm', script: { gpus: 1 } })
    for (let i = 0; i < 3; i++) await ticker.tick()
    expect((await ticker.gpu()).nvlinkTxBytesPerSecond).toBeGreaterThan(0)
    expect((await ticker.gpu()).nvlinkRxBytesPerSecond).toBeGreaterThan(0)
  })

  it('reads the slow tier in its own rhythm and says when', async () => {
    const { ticker, script, counts } = await begin({ script: { gpus: 1, energy: 1000 }, options: { slowIntervalMs: 3000 } })
    const one = await ticker.gpu()
    script.update({ energy: 2000, temp: 91 })
    const two = await ticker.gpu()
    const three = await ticker.gpu()
    const four = await ticker.gpu()
    expect([one, two, three, four].map((sample) => sample.energyJoules)).toEqual([1, 1, 1, 2])
    expect([one, two, three, four].map((sample) => sample.slowAt)).toEqual([one.at, one.at, one.at, four.at])
    expect(two.temperatureCelsius).toBe(91)
    expect((await counts()).nvmlDeviceGetCurrPcieLinkWidth).toBe(2)
  })

  it('spreads the slow tier of many GPUs over the interval', async () => {
    const { ticker } = await begin({ script: { gpus: 4 }, options: { slowIntervalMs: 4000 } })
    await ticker.tick()
    const readAt = new Set<number>()
    for (let i = 0; i < 9; i++) for (const sample of await ticker.gpus()) if (sample.slowAt === sample.at) readAt.add(sample.at)
    expect(readAt.size).toBeGreaterThan(3)
  })

  it('prefers the instant power field and falls back to the older call', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, power: 300000, field_ret: '186:3' } })
    expect((await ticker.gpu()).powerWatts).toBe(300)
    expect((await ticker.gpu()).powerWatts).toBe(300)
    expect((await counts()).nvmlDeviceGetPowerUsage).toBe(2)
    expect(ticker.device().unavailable.powerWatts).toBe(undefined)
  })

  it('never calls the throughput function that sleeps', async () => {
    const { ticker, counts } = await begin({ script: { field_ret: '197:3,198:3' } })
    for (let i = 0; i < 4; i++) await ticker.tick()
    expect((await counts()).nvmlDeviceGetPcieThroughput).toBe(undefined)
  })
})

describe('what a GPU does not have', () => {
  it('is asked for once, and the reason comes in one new list of devices', async () => {
    const { ticker, source, counts } = await begin({
      script: { gpus: 1, ret: ['nvmlDeviceGetEncoderUtilization:3', 'nvmlDeviceGetTemperature:4'], field_ret: '82:3' },
    })
    const lists = new Set([source.devices()])
    for (let i = 0; i < 8; i++) {
      await ticker.tick(3000)
      lists.add(source.devices())
    }
    expect(lists.size).toBe(2)
    const { unavailable } = ticker.device()
    expect(unavailable).toMatchObject({
      encoderRatio: 'not supported by this GPU',
      temperatureCelsius: 'no permission',
      memoryTemperatureCelsius: 'not supported by this GPU',
      fanRatio: 'not supported by this GPU',
      retiredPagesPending: 'not supported by this GPU',
    })
    expect(unavailable.decoderRatio).toBe(undefined)
    const made = await counts()
    expect(made.nvmlDeviceGetEncoderUtilization).toBe(1)
    expect(made.nvmlDeviceGetTemperature).toBe(1)
    expect(made.nvmlDeviceGetFanSpeed).toBe(1)
    expect(made.nvmlDeviceGetDecoderUtilization).toBe(8)
  })

  it('does not stop what only failed for once', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, temp: 60 } })
    script.update({ ret: ['nvmlDeviceGetTemperature:999'] })
    expect(await ticker.gpu()).toMatchObject({ state: 'ok', temperatureCelsius: null })
    script.update({ ret: null })
    expect((await ticker.gpu()).temperatureCelsius).toBe(60)
  })

  it('still reads a driver of the past by the older calls', async () => {
    const { ticker } = await begin({ variant: 'old', script: { gpus: 1, power: 200000, energy: 5000, reasons: 4, processes: 2 } })
    for (let i = 0; i < 3; i++) await ticker.tick()
    const sample = await ticker.gpu()
    expect(sample).toMatchObject({ powerWatts: 200, energyJoules: 5, clockEventReasons: 4, memoryReservedBytes: null, smActiveRatio: null })
    expect(sample.eccCorrectedVolatileCount).toBe(0)
    expect(sample.processes).toHaveLength(2)
    const { unavailable, cudaVersion } = ticker.device()
    expect(cudaVersion).toBe(null)
    expect(unavailable.memoryReservedBytes).toContain('includes')
    expect(unavailable.smActiveRatio).toBe('symbol missing: driver too old')
    expect(unavailable.memoryTemperatureCelsius).toBe('symbol missing: driver too old')
    expect(unavailable['processes.smRatio']).toBe('symbol missing: driver too old')
  })
})
