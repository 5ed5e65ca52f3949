import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'

const GIB = 1024 ** 3

describe('MIG', () => {
  it('shows each instance as a device of its own', async () => {
    const { source, ticker } = await begin({
      script: { gpus: 2, 'gpu0.mig': 3, memory_total: 90 * GIB, memory_used: 30 * GIB, processes: 2 },
    })
    const devices = source.devices()
    expect(devices.map((device) => device.label)).toEqual(['0', '0:1', '0:2', '0:3', '1'])
    expect(devices.map((device) => device.migMode)).toEqual(['enabled', null, null, null, 'disabled'])
    expect(devices[1]).toMatchObject({
      id: 'MIG-00000000-0000-5000-8000-000000000000',
      index: 0,
      memoryTotalBytes: 30 * GIB,
      architecture: 'Hopper',
      mig: { parentId: devices[0]?.id, gpuInstanceId: 1, computeInstanceId: 0, profile: '1g.32gb' },
    })
    await ticker.tick()
    const [parent, instance] = await ticker.gpus()
    expect(parent).toMatchObject({ state: 'ok', utilizationRatio: null, processes: null, memoryTotalBytes: 90 * GIB })
    expect(parent?.temperatureCelsius).toBeGreaterThan(0)
    expect(devices[0]?.unavailable).toMatchObject({ utilizationRatio: 'MIG is enabled: see the instances' })
    expect(instance).toMatchObject({ gpu: devices[1]?.id, memoryUsedBytes: 10 * GIB, temperatureCelsius: null, slowAt: null })
    expect(instance?.smActiveRatio).toBeGreaterThan(0)
    expect(instance?.processes).toHaveLength(2)
    expect(devices[1]?.unavailable.temperatureCelsius).toContain('whole GPU')
  })

  it('gives compute instances that share a GPU instance labels of their own, and both memory of the whole', async () => {
    const { source, ticker } = await begin({
      script: { gpus: 1, mig: 4, mig_compute: 2, memory_total: 80 * GIB, memory_used: 20 * GIB, gpm_1: 25 },
    })
    const devices = source.devices()
    expect(devices.map(({ label }) => label)).toEqual(['0', '0:1:0', '0:1:1', '0:2:0', '0:2:1'])
    expect(devices.map(({ mig }) => mig && [mig.gpuInstanceId, mig.computeInstanceId, mig.profile])).toEqual([
      null,
      [1, 0, '1c.2g.42gb'],
      [1, 1, '1c.2g.42gb'],
      [2, 0, '1c.2g.42gb'],
      [2, 1, '1c.2g.42gb'],
    ])
    await ticker.tick()
    const samples = await ticker.gpus()
    expect(samples.map(({ memoryTotalBytes }) => memoryTotalBytes)).toEqual([80, 40, 40, 40, 40].map((one) => one * GIB))
    expect(samples.map(({ utilizationRatio }) => utilizationRatio)).toEqual([null, 0.25, 0.25, 0.25, 0.25])
    expect(new Set(samples.map(({ gpu }) => gpu)).size).toBe(5)
  })

  it('says why the utilization of an instance is unknown before Hopper', async () => {
    const { source, ticker } = await begin({ script: { gpus: 1, mig: 2, gpm: 0 } })
    for (let i = 0; i < 4; i++) expect((await ticker.gpus())[1]?.utilizationRatio).toBe(null)
    expect(source.devices()[1]?.unavailable.utilizationRatio).toBe('a MIG instance tells it from Hopper on')
  })

  it('distinguishes the processes of one instance from those of another', async () => {
    const { ticker } = await begin({ script: { gpus: 1, mig: 2, processes: 1 } })
    const [, one, two] = await ticker.gpus()
    expect(one?.processes?.[0]?.pid).not.toBe(two?.processes?.[0]?.pid)
  })

  it('does not ask the parent for what MIG forbids', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, mig: 2 } })
    for (let i = 0; i < 3; i++) await ticker.tick()
    const made = await counts()
    expect(made.nvmlDeviceGetUtilizationRates).toBe(undefined)
    expect(made.nvmlDeviceGetProcessUtilization).toBe(undefined)
  })

  it('notices a new partition, and MIG being switched', async () => {
    const { source, ticker, script } = await begin({ script: { gpus: 1, mig: 2 }, options: { slowIntervalMs: 2000 } })
    await ticker.tick()
    const before = source.devices()
    script.update({ mig: 4, mig_generation: 1 })
    await ticker.tick()
    expect(source.devices()).toBe(before)
    const samples = await ticker.gpus()
    expect(source.devices().map((device) => device.label)).toEqual(['0', '0:1', '0:2', '0:3', '0:4'])
    expect(samples.map((sample) => sample.gpu)).toEqual(source.devices().map((device) => device.id))
    script.update({ mig_generation: 2 })
    await ticker.tick(2000)
    expect(source.devices()[1]?.id).toBe('MIG-00000000-0002-5000-8000-000000000000')
    script.update({ mig: null, util: 50 })
    const [whole, ...rest] = await ticker.gpus(2000)
    expect(rest).toEqual([])
    expect(whole).toMatchObject({ utilizationRatio: 0.5 })
    expect(whole?.processes).toHaveLength(1)
    expect(source.devices()).toMatchObject([{ migMode: 'disabled' }])
    expect(source.devices()[0]?.unavailable.utilizationRatio).toBe(undefined)
  })

  it('loses its instances with the GPU', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, mig: 2 } })
    await ticker.tick()
    script.update({ lost: [0] })
    expect((await ticker.gpus()).map((sample) => sample.state)).toEqual(['lost', 'lost', 'lost'])
  })
})
