import { describe, expect, it } from 'vitest'
import { begin } from '../../../test/fake-nvml/open-fake.ts'
import { AdaptiveTier } from './adaptive-tier.ts'
import { UNKNOWN_SHARES } from './process-utilization.ts'
import { mergeProcesses } from './processes.ts'

describe('process lists', () => {
  it.each([16, 24, 32])('are read at a stride of %i', async (stride) => {
    const { ticker } = await begin({ script: { gpus: 1, stride, processes: 3, pids: [11, 22, 33], process_memory: 5_000_000_000 } })
    const { processes } = await ticker.gpu()
    expect(processes?.map(({ pid, memoryUsedBytes }) => [pid, memoryUsedBytes])).toEqual([
      [11, 5_000_000_000],
      [22, 5_000_000_000],
      [33, 5_000_000_000],
    ])
  })

  it('are null with a reason at an unknown stride', async () => {
    const { ticker } = await begin({ script: { gpus: 1, stride: 20, processes: 3 } })
    for (let i = 0; i < 3; i++) expect((await ticker.gpu()).processes).toBe(null)
    expect(ticker.device().unavailable.processes).toContain('size')
  })

  it('are empty when nobody is there', async () => {
    const { ticker } = await begin({ script: { gpus: 1, processes: 0 } })
    expect((await ticker.gpu()).processes).toEqual([])
  })

  it('give null, not 16 EiB, for memory that the driver does not report', async () => {
    const { ticker } = await begin({ script: { gpus: 1, processes: 2, used_all_ones: 1 } })
    expect((await ticker.gpu()).processes?.map((process) => process.memoryUsedBytes)).toEqual([null, null])
  })

  it('are read although the list grew in between', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, processes: 40, grow: 2 } })
    expect((await ticker.gpu()).processes).toHaveLength(40)
    const made = (await counts()).nvmlDeviceGetComputeRunningProcesses_v3 ?? 0
    expect(made).toBeGreaterThan(2)
    await ticker.tick()
    expect((await counts()).nvmlDeviceGetComputeRunningProcesses_v3).toBe(made + 1)
  })

  it('are given up for this tick when they grow for ever', async () => {
    const { ticker, counts, script } = await begin({ script: { gpus: 1, processes: 3, grow: 1000 } })
    expect((await ticker.gpu()).processes).toBe(null)
    expect((await counts()).nvmlDeviceGetComputeRunningProcesses_v3).toBe(4)
    script.update({ grow: 0 })
    expect((await ticker.gpu()).processes).toHaveLength(3)
  })

  it.each([
    ['processes-v2', 'nvmlDeviceGetComputeRunningProcesses_v2'],
    ['old', 'nvmlDeviceGetComputeRunningProcesses'],
  ] as const)('fall back to older calls: %s', async (variant, symbol) => {
    const { ticker, counts } = await begin({ variant, script: { gpus: 1, processes: 2 } })
    expect((await ticker.gpu()).processes).toHaveLength(2)
    expect((await counts())[symbol]).toBe(1)
  })

  it('fall back when the newer call is there but refuses', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, processes: 2, ret: ['nvmlDeviceGetComputeRunningProcesses_v3:13'] } })
    for (let i = 0; i < 3; i++) expect((await ticker.gpu()).processes).toHaveLength(2)
    expect(await counts()).toMatchObject({ nvmlDeviceGetComputeRunningProcesses_v3: 1, nvmlDeviceGetComputeRunningProcesses_v2: 3 })
  })

  it('merge a process that computes and draws', async () => {
    const { ticker } = await begin({ script: { gpus: 1, processes: 2, pids: [7, 8], both: 1, graphics: 1, graphics_pids: [7, 9] } })
    expect((await ticker.gpu()).processes?.map(({ pid, type }) => [pid, type])).toEqual([
      [7, 'both'],
      [8, 'compute'],
      [9, 'graphics'],
    ])
  })

  it('count memory once for a process in both lists', () => {
    const merged = mergeProcesses(
      [{ pid: 1, memoryUsedBytes: 100 }],
      [
        { pid: 1, memoryUsedBytes: 120 },
        { pid: 2, memoryUsedBytes: null },
      ],
      () => UNKNOWN_SHARES,
    )
    expect(merged).toMatchObject([
      { pid: 1, type: 'both', memoryUsedBytes: 120 },
      { pid: 2, type: 'graphics', memoryUsedBytes: null },
    ])
  })

  it('ask a slow graphics list only every five seconds, and keep what it said', async () => {
    const delay = 'nvmlDeviceGetGraphicsRunningProcesses_v3:3000'
    const { ticker, counts } = await begin({ script: { gpus: 1, graphics: 1, delay_us: [delay] }, options: { slowIntervalMs: 100_000 } })
    for (let i = 0; i < 20; i++) expect((await ticker.gpu()).processes).toHaveLength(2)
    expect(await counts()).toMatchObject({
      nvmlDeviceGetGraphicsRunningProcesses_v3: 8,
      nvmlDeviceGetComputeRunningProcesses_v3: 20,
    })
    await ticker.tick(100_000)
    expect((await counts()).nvmlDeviceGetGraphicsRunningProcesses_v3).toBe(9)
  })
})

describe('the tier of a call', () => {
  const measured = (tier: AdaptiveTier, advance: (ms: number) => void, durations: readonly number[]) => {
    for (const ms of durations) tier.measure(() => advance(ms))
    return tier.slow
  }

  it('is slow when the median is above 1 ms, and fast again below half of that', () => {
    let now = 0
    const tier = new AdaptiveTier(() => now)
    const advance = (ms: number) => {
      now += ms
    }
    expect(measured(tier, advance, [3, 3, 3, 3])).toBe(false)
    expect(measured(tier, advance, [0.1])).toBe(true)
    expect(measured(tier, advance, Array(9).fill(0.8))).toBe(true)
    expect(measured(tier, advance, Array(9).fill(0.1))).toBe(false)
    expect(measured(tier, advance, Array(9).fill(0.8))).toBe(false)
  })

  it('is not moved by a single slow call', () => {
    let now = 0
    const tier = new AdaptiveTier(() => now)
    const advance = (ms: number) => {
      now += ms
    }
    expect(measured(tier, advance, [900, 0.1, 0.1, 0.1, 0.1, 0.1, 50])).toBe(false)
  })
})

describe('process utilization', () => {
  it('gives shares, kept until the next reading, at most every two seconds', async () => {
    const { ticker, script, counts } = await begin({
      script: { gpus: 1, processes: 2, process_sm: 40, process_mem: 30 },
      options: { slowIntervalMs: 500 },
    })
    const shares = (await ticker.gpu()).processes?.map(({ smRatio, memoryRatio, encoderRatio }) => [smRatio, memoryRatio, encoderRatio])
    expect(shares).toEqual([
      [0.4, 0.3, 0],
      [0.4, 0.3, 0],
    ])
    script.update({ process_sm: 50 })
    expect((await ticker.gpu()).processes?.[0]?.smRatio).toBe(0.4)
    expect((await counts()).nvmlDeviceGetProcessUtilization).toBe(1)
    expect((await ticker.gpu()).processes?.[0]?.smRatio).toBe(0.5)
  })

  it('does not wait for the slow tier', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, processes: 1 }, options: { slowIntervalMs: 10_000 } })
    for (let i = 0; i < 20; i++) await ticker.gpu()
    const { nvmlDeviceGetProcessUtilization, nvmlDeviceGetCurrPcieLinkWidth } = await counts()
    expect({ nvmlDeviceGetProcessUtilization, nvmlDeviceGetCurrPcieLinkWidth }).toEqual({
      nvmlDeviceGetProcessUtilization: 4,
      nvmlDeviceGetCurrPcieLinkWidth: 2,
    })
  })

  it('takes "not found" for idle and discards nonsense', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1, processes: 1, util_samples: 0 }, options: { slowIntervalMs: 2000 } })
    expect((await ticker.gpu()).processes?.[0]?.smRatio).toBe(0)
    script.update({ util_samples: 1, process_sm: 4_000_000 })
    expect((await ticker.gpu(2000)).processes?.[0]?.smRatio).toBe(null)
  })

  it('ignores samples that are older than what was asked for', async () => {
    const { ticker } = await begin({ script: { gpus: 1, processes: 1, process_sm: 90, util_timestamp: 1000 } })
    expect((await ticker.gpu()).processes?.[0]?.smRatio).toBe(0)
  })

  it('is not asked again where it is not supported', async () => {
    const { ticker, counts } = await begin({
      script: { gpus: 1, processes: 1, ret: ['nvmlDeviceGetProcessUtilization:3'] },
      options: { slowIntervalMs: 2000 },
    })
    for (let i = 0; i < 4; i++) expect((await ticker.gpu(2000)).processes?.[0]?.smRatio).toBe(null)
    expect((await counts()).nvmlDeviceGetProcessUtilization).toBe(1)
    expect(ticker.device().unavailable['processes.smRatio']).toBe('not supported by this GPU')
  })
})
