import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'

describe('GPM', () => {
  it('gives ratios from the second tick on, rounded and never above 1', async () => {
    const { ticker, script } = await begin({
      script: { gpus: 1, gpm_1: 70, gpm_2: 45.678901, gpm_3: 104, gpm_5: 12.5, gpm_10: 33, gpm_11: 1, gpm_12: 2, gpm_13: 3 },
    })
    expect(await ticker.gpu()).toMatchObject({ smActiveRatio: null, tensorActiveRatio: null })
    expect(await ticker.gpu()).toMatchObject({
      graphicsActiveRatio: 0.7,
      smActiveRatio: 0.4568,
      smOccupancyRatio: 1,
      tensorActiveRatio: 0.125,
      dramActiveRatio: 0.33,
      fp64ActiveRatio: 0.01,
      fp32ActiveRatio: 0.02,
      fp16ActiveRatio: 0.03,
    })
    script.update({ gpm_5: -1 })
    expect((await ticker.gpu()).tensorActiveRatio).toBe(null)
  })

  it('computes the expensive metric with the slow tier only, and carries it in between', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, gpm_1: 70, gpm_2: 10 }, options: { slowIntervalMs: 3000 } })
    await ticker.tick()
    expect(await ticker.gpu()).toMatchObject({ graphicsActiveRatio: 0.7, smActiveRatio: 0.1 })
    script.update({ gpm_1: 80, gpm_2: 20 })
    expect(await ticker.gpu()).toMatchObject({ graphicsActiveRatio: 0.7, smActiveRatio: 0.2 })
    expect(await ticker.gpu()).toMatchObject({ graphicsActiveRatio: 0.8, smActiveRatio: 0.2 })
  })

  it('gives the traffic, in the right direction, and the dearer counters are not asked', async () => {
    const { ticker, script } = await begin({
      script: { gpus: 1, field: '197:1000,198:1000', gpm_20: 10, gpm_21: 20, gpm_60: 30, gpm_61: 40 },
    })
    await ticker.tick()
    const MEBIBYTE = 1024 * 1024
    expect(await ticker.gpu()).toMatchObject({
      pcieTxBytesPerSecond: 10 * MEBIBYTE,
      pcieRxBytesPerSecond: 20 * MEBIBYTE,
      nvlinkRxBytesPerSecond: 30 * MEBIBYTE,
      nvlinkTxBytesPerSecond: 40 * MEBIBYTE,
    })
    script.update({ gpm_20: 11 })
    expect((await ticker.gpu()).pcieTxBytesPerSecond).toBe(11 * MEBIBYTE)
    expect(ticker.device().unavailable.pcieTxBytesPerSecond).toBe(undefined)
  })

  it.each([
    ['no-gpm', {}, 'symbol missing: driver too old'],
    ['current', { gpm: 0 }, 'not supported by this GPU: these counters came with Hopper'],
  ] as const)('is null with a reason where it is absent: %s', async (variant, script, reason) => {
    const { ticker, counts } = await begin({ variant, script: { gpus: 1, field_ret: '197:3', ...script } })
    for (let i = 0; i < 3; i++) expect(await ticker.gpu()).toMatchObject({ smActiveRatio: null, pcieTxBytesPerSecond: null })
    expect(ticker.device().unavailable).toMatchObject({ smActiveRatio: reason, pcieTxBytesPerSecond: 'not supported by this GPU' })
    expect((await counts()).nvmlGpmSampleGet).toBe(undefined)
  })

  it('frees its samples', async () => {
    const { source, ticker, counts } = await begin({ script: { gpus: 3 } })
    await ticker.tick()
    await source.close()
    expect(await counts()).toMatchObject({ nvmlGpmSampleAlloc: 6, nvmlGpmSampleFree: 6, nvmlShutdown: 1, nvmlEventSetFree: 1 })
  })

  it('does not ask again when sampling is refused', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, ret: ['nvmlGpmSampleGet:4'] } })
    for (let i = 0; i < 4; i++) expect(await ticker.gpu()).toMatchObject({ state: 'ok', smActiveRatio: null })
    expect((await counts()).nvmlGpmSampleGet).toBe(1)
    expect(ticker.device().unavailable.smActiveRatio).toBe('no permission')
  })
})
