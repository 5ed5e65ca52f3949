import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'
import type { GpuLink } from '../../core/model.ts'

/** Every tick reads the slow tier, every third what is rare. */
const options = { slowIntervalMs: 500 }
const MIB = 1024 ** 2

describe('what hardly ever changes', () => {
  it('is known after the first reading', async () => {
    const { ticker } = await begin({
      script: {
        gpus: 1,
        ...{
          temp: 60,
          margin: 27,
          jpeg: 3,
          ofa: 4,
          memory_power: 44_890,
          module_power: 812_000,
          bar1_total: 1024 * MIB,
          bar1_used: 8 * MIB,
        },
        ...{
          part_number: '900-21001',
          gsp: '580.1',
          ecc_mode: 1,
          ecc_mode_pending: 0,
          persistence: 0,
          confidential: 2,
          power_smoothing: 1,
        },
        ...{ chassis: '1821325191344', tpc_repair: 1, field: '269:1500000000,270:2500000000,271:3500000000' },
      },
      options,
    })
    expect(await ticker.gpu()).toMatchObject({
      ...{ jpegRatio: 0.03, ofaRatio: 0.04, temperatureMarginCelsius: 27, memoryPowerWatts: 44.89, modulePowerWatts: 812 },
      ...{ bar1UsedBytes: 8 * MIB, channelRepairPending: 0, tpcRepairPending: 1 },
      ...{ softwareThermalSeconds: 1.5, hardwareThermalSeconds: 2.5, powerBrakeSeconds: 3.5 },
    })
    expect(ticker.device()).toMatchObject({
      ...{ partNumber: '900-21001', gspFirmwareVersion: '580.1', eccMode: 'enabled', eccModePending: 'disabled' },
      ...{ persistenceMode: 'disabled', confidentialComputing: 'devtools', powerSmoothing: 'enabled', bar1TotalBytes: 1024 * MIB },
      platform: { chassisSerial: '1821325191344', slot: 11, tray: 12, host: 13, module: 14 },
    })
  })

  it('is below 0 where the card is over its limit', async () => {
    const { ticker } = await begin({ script: { gpus: 1, margin: -3 } })
    expect((await ticker.gpu()).temperatureMarginCelsius).toBe(-3)
  })

  it('is reported again when somebody changes it, within half a minute', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, persistence: 0 }, options })
    await ticker.tick()
    const before = ticker.source.devices()
    expect(before[0]).toMatchObject({ persistenceMode: 'disabled' })
    script.update({ persistence: 1 })
    for (let i = 0; i < 3; i++) await ticker.tick()
    expect(ticker.device()).toMatchObject({ persistenceMode: 'enabled' })
    expect(ticker.source.devices()).not.toBe(before)
  })

  it('is null with the reason where the card does not have it', async () => {
    const nothing = [
      'nvmlDeviceGetJpgUtilization',
      'nvmlDeviceGetOfaUtilization',
      'nvmlDeviceGetMarginTemperature',
      'nvmlDeviceGetBAR1MemoryInfo',
    ]
    const { ticker, counts } = await begin({
      script: { gpus: 1, ecc_mode: -1, gsp: '', confidential: -1, ret: nothing.map((name) => `${name}:3`) },
      options,
    })
    for (let i = 0; i < 8; i++) await ticker.tick()
    const fields = [
      'jpegRatio',
      'ofaRatio',
      'temperatureMarginCelsius',
      'bar1UsedBytes',
      'bar1TotalBytes',
      'eccMode',
      'gspFirmwareVersion',
      'platform',
    ]
    for (const field of fields) expect(ticker.device().unavailable[field], field).toBe('not supported by this GPU')
    expect(ticker.device().confidentialComputing).toBe(null)
    const made = await counts()
    for (const name of nothing) expect(made[name], name).toBe(1)
  })

  it.each(['570.86.10', '575.51.03'])('does not ask driver %s for fields whose numbers meant something else then', async (driver) => {
    const { ticker } = await begin({ script: { gpus: 1, driver, power_smoothing: 1, field: '269:1,270:1,271:1' }, options })
    expect(await ticker.gpu()).toMatchObject({ softwareThermalSeconds: null, hardwareThermalSeconds: null, powerBrakeSeconds: null })
    expect(ticker.device()).toMatchObject({ powerSmoothing: null, unavailable: { powerSmoothing: 'driver too old: it came with 580' } })
  })

  it('is read anew after the GPU was lost', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, persistence: 0 } })
    await ticker.tick()
    script.update({ lost: [0] })
    await ticker.tick()
    script.update({ lost: null, persistence: 1 })
    await ticker.tick(20_000)
    expect(ticker.device()).toMatchObject({ persistenceMode: 'enabled' })
  })
})

describe('NVLinks', () => {
  const link = (number: number, state: 'active' | 'inactive'): Partial<GpuLink> => ({
    ...{ link: number, state, version: 4, bytesPerSecondMax: 26_562e6 },
    ...{ replayCount: 1000 + number, recoveryCount: 2000 + number, crcErrorCount: 3000 + number, symbolErrorCount: null },
  })

  it('are listed with their states and errors, and summed up', async () => {
    const { ticker } = await begin({ script: { gpus: 1, nvlinks: 8, nvlink_down: 7, nvlink_errors: 1 }, options })
    expect(await ticker.gpu()).toMatchObject({
      nvlinkActiveCount: 7,
      nvlinkReplayCount: 8 * 1000 + 28,
      nvlinkRecoveryCount: 8 * 2000 + 28,
      nvlinkCrcErrorCount: 8 * 3000 + 28,
    })
    expect(ticker.device().nvlinks).toMatchObject(Array.from({ length: 8 }, (_, i) => link(i, i === 7 ? 'inactive' : 'active')))
  })

  it('are followed when one goes down', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, nvlinks: 2 }, options })
    expect((await ticker.gpu()).nvlinkActiveCount).toBe(2)
    script.update({ nvlink_down: 1, nvlink_errors: 1 })
    await ticker.tick()
    await ticker.tick()
    expect(await ticker.gpu()).toMatchObject({ nvlinkActiveCount: 1, nvlinkReplayCount: 2001 })
    expect(ticker.device().nvlinks.map(({ state }) => state)).toEqual(['active', 'inactive'])
  })

  it('count recoveries and symbol errors as NVLink 5 does', async () => {
    const { ticker } = await begin({
      script: {
        gpus: 1,
        nvlinks: 1,
        field_ret: '161:3,162:3,163:3',
        field: '215:4,219:5,221:6',
        ret: ['nvmlDeviceGetNvLinkErrorCounter:3'],
      },
      options,
    })
    await ticker.tick()
    expect(ticker.device().nvlinks).toMatchObject([
      { replayCount: null, recoveryCount: 4, crcErrorCount: null, effectiveErrorCount: 5, symbolErrorCount: 6 },
    ])
  })

  it.each([
    ['driver without the fields', { variant: 'old' as const, script: {} }],
    ['card without them', { script: { field_ret: '91:3,161:3,162:3,163:3,164:3,165:3,166:3' } }],
  ])('are read by the older calls on a %s', async (_, { script, ...rest }) => {
    const { ticker } = await begin({ ...rest, script: { gpus: 1, nvlinks: 2, nvlink_down: 0, nvlink_errors: 1, ...script }, options })
    expect(await ticker.gpu()).toMatchObject({ nvlinkActiveCount: 1, nvlinkReplayCount: 2001, nvlinkCrcErrorCount: 6001 })
    for (let i = 0; i < 3; i++) await ticker.tick()
    expect(ticker.device().nvlinks).toMatchObject([
      { link: 0, state: 'inactive', replayCount: 1000, recoveryCount: 2000, crcErrorCount: 3000 },
      { link: 1, state: 'active', replayCount: 1001, recoveryCount: 2001, crcErrorCount: 3001 },
    ])
  })

  it('are none, with the reason, on a card without them', async () => {
    const { ticker } = await begin({ script: { gpus: 1 }, options })
    for (let i = 0; i < 4; i++) expect((await ticker.gpu()).nvlinkActiveCount).toBe(null)
    expect(ticker.device()).toMatchObject({ nvlinks: [], c2cLinks: [] })
    expect(ticker.device().unavailable.nvlinkActiveCount).toContain('no NVLink')
  })
})

describe('links to the CPU', () => {
  it('are listed with what they can carry', async () => {
    const { ticker } = await begin({ script: { gpus: 1, c2c: 2, field: '231:7,232:8' }, options })
    await ticker.tick()
    expect(ticker.device().c2cLinks).toMatchObject([
      { link: 0, state: 'active', bytesPerSecondMax: 44_712e6, crcErrorCount: 7, replayCount: 8 },
      { link: 1, state: 'active', bytesPerSecondMax: 44_712e6, crcErrorCount: 7, replayCount: 8 },
    ])
  })
})

describe('PCIe traffic on a card without counters', () => {
  it('is measured rarely, and kept in between', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, gpm: 0, field_ret: '197:3,198:3' } })
    expect(await ticker.gpu()).toMatchObject({ pcieTxBytesPerSecond: null, pcieRxBytesPerSecond: null })
    for (let i = 0; i < 40; i++) await ticker.tick()
    expect(await ticker.gpu()).toMatchObject({ pcieTxBytesPerSecond: 572 * 1024, pcieRxBytesPerSecond: 1143 * 1024 })
    expect((await counts()).nvmlDeviceGetPcieThroughput).toBe(2)
    expect(ticker.device().unavailable.pcieTxBytesPerSecond).toBe(undefined)
  })
})
