import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'

/** Every tick reads the slow tier. */
const options = { slowIntervalMs: 500 }

describe('the state of the NVLink fabric', () => {
  it('is followed while the GPU joins', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, fabric_state: 1 }, options })
    expect((await ticker.gpu()).fabricState).toBe(1)
    script.update({ fabric_state: 2 })
    expect((await ticker.gpu()).fabricState).toBe(2)
    script.update({ fabric_state: 3 })
    expect((await ticker.gpu()).fabricState).toBe(3)
    expect(ticker.device().unavailable.fabricState).toBe(undefined)
  })

  it('tells clique, cluster and health once it has joined', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, fabric_state: 2, fabric_clique: 7, fabric_health: 1 }, options })
    expect(await ticker.gpu()).toMatchObject({ fabricState: 2, fabricHealth: 1 })
    expect(ticker.device()).toMatchObject({ fabricCliqueId: null, fabricClusterId: null })
    const before = ticker.device()
    script.update({ fabric_state: 3, fabric_health: 2 })
    expect(await ticker.gpu()).toMatchObject({ fabricState: 3, fabricHealth: 2 })
    expect(ticker.device()).not.toBe(before)
    expect(ticker.device()).toMatchObject({ fabricCliqueId: 7, fabricClusterId: 'fafafafa-fafa-fafa-fafa-fafafafafafa' })
  })

  it('is asked for in the second version where the driver does not know the third', async () => {
    const { ticker, counts } = await begin({
      script: { gpus: 1, fabric_state: 3, fabric_version: 2, fabric_health_mask: 0b0001_10_10_10_01 },
      options,
    })
    for (let i = 0; i < 3; i++) expect(await ticker.gpu()).toMatchObject({ fabricState: 3, fabricHealth: 2 })
    expect((await counts()).nvmlDeviceGetGpuFabricInfoV).toBe(4)
  })

  it('is read with the slow tier, not in between', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, fabric_state: 3 }, options: { slowIntervalMs: 3000 } })
    for (let i = 0; i < 4; i++) expect((await ticker.gpu()).fabricState).toBe(3)
    const made = await counts()
    expect(made.nvmlDeviceGetGpuFabricInfoV).toBe(2)
    expect(made.nvmlDeviceGetGpuFabricInfo).toBe(undefined)
  })

  it.each([
    ['does not know the question', {}, 'not supported by this GPU'],
    ['says that it is in none', { fabric_state: 0 }, 'this GPU is in no NVLink fabric'],
  ])('is null, and not asked again, on a GPU that %s', async (_, values, reason) => {
    const { ticker, counts } = await begin({ script: { gpus: 1, ...values }, options })
    for (let i = 0; i < 3; i++) expect((await ticker.gpu()).fabricState).toBe(null)
    expect(ticker.device().unavailable.fabricState).toBe(reason)
    expect((await counts()).nvmlDeviceGetGpuFabricInfoV).toBe(1)
  })

  it.each([25, 13])('is asked for without a version where the driver answers %i to the one we have', async (code) => {
    const { ticker, counts } = await begin({ script: { gpus: 1, fabric_state: 3, ret: [`nvmlDeviceGetGpuFabricInfoV:${code}`] }, options })
    for (let i = 0; i < 3; i++) expect((await ticker.gpu()).fabricState).toBe(3)
    const made = await counts()
    expect([made.nvmlDeviceGetGpuFabricInfoV, made.nvmlDeviceGetGpuFabricInfo]).toEqual([2, 3])
    expect(ticker.device().unavailable.fabricState).toBe(undefined)
  })

  it('is null with the reason where the driver is too old', async () => {
    const { ticker } = await begin({ variant: 'old', script: { gpus: 1, fabric_state: 3 }, options })
    expect((await ticker.gpu()).fabricState).toBe(null)
    expect(ticker.device().unavailable.fabricState).toBe('symbol missing: driver too old')
  })

  it('is null for an unknown number, until a known one comes', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, fabric_state: 9 }, options })
    // Reasons that come together are told together, a little later.
    for (let i = 0; i < 3; i++) expect((await ticker.gpu(3000)).fabricState).toBe(null)
    expect(ticker.device().unavailable.fabricState).toBe('the driver speaks of a state 9')
    script.update({ fabric_state: 3 })
    for (let i = 0; i < 3; i++) expect((await ticker.gpu(3000)).fabricState).toBe(3)
    expect(ticker.device().unavailable.fabricState).toBe(undefined)
  })

  it('belongs to the card, not to its MIG instances', async () => {
    const { ticker, source } = await begin({ script: { gpus: 1, mig: 2, fabric_state: 3 }, options })
    expect((await ticker.gpu()).fabricState).toBe(3)
    const instances = source.devices().filter(({ mig }) => mig !== null)
    expect(instances).toHaveLength(2)
    for (const { unavailable } of instances) expect(unavailable.fabricState).toContain('whole GPU')
  })
})
