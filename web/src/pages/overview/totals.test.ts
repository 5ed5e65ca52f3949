import { describe, expect, it } from 'vitest'
import type { GpuInfo, GpuSample, ProcessView } from '../../../../src/core/model.ts'
import { type TotalsInput, totalsOf } from './totals.ts'

function gpu(id: string, figures: Partial<GpuSample>, more: Partial<TotalsInput> & { facts?: Partial<GpuInfo> } = {}): TotalsInput {
  const { facts, ...rest } = more
  return {
    info: { id, mig: null, powerLimitWatts: 700, powerLimitEnforcedWatts: null, ...facts } as GpuInfo,
    sample: { utilizationRatio: 0.5, memoryUsedBytes: 10, memoryTotalBytes: 80, powerWatts: 300, processes: [], ...figures } as GpuSample,
    processes: [],
    isCurrent: true,
    ...rest,
  }
}

const process = (pid: number, user: string | null) => ({ pid, info: user === null ? null : { user } }) as ProcessView

describe('totalsOf', () => {
  it('sums, and takes the mean of utilization', () => {
    const totals = totalsOf([gpu('a', { utilizationRatio: 1 }), gpu('b', { utilizationRatio: 0.5, powerWatts: 100 })])
    expect(totals).toMatchObject({
      gpus: 2,
      notCurrent: 0,
      utilizationRatio: 0.75,
      memoryUsedBytes: 20,
      memoryTotalBytes: 160,
      powerWatts: 400,
      powerCapWatts: 1400,
    })
  })

  it('does not count what is old as if it were current', () => {
    const totals = totalsOf([
      gpu('a', {}),
      gpu('b', { utilizationRatio: 1, memoryUsedBytes: 70 }, { isCurrent: false }),
      gpu('c', {}, { sample: null }),
    ])
    expect(totals).toMatchObject({ gpus: 3, notCurrent: 2, utilizationRatio: 0.5, memoryUsedBytes: 10, powerCapWatts: 700 })
  })

  it('is unknown where nothing is known, and a cap is unknown when one card does not report its own', () => {
    expect(totalsOf([])).toMatchObject({
      gpus: 0,
      utilizationRatio: null,
      memoryUsedBytes: null,
      powerWatts: null,
      powerCapWatts: null,
      processes: null,
    })
    const silent = gpu('b', { powerWatts: null }, { facts: { powerLimitWatts: null } })
    expect(totalsOf([gpu('a', {}), silent])).toMatchObject({ powerWatts: 300, powerCapWatts: null })
  })

  it('counts a card once, not again with its MIG instances', () => {
    const mig = { parentId: 'a', gpuInstanceId: 1, computeInstanceId: 0, profile: null }
    const totals = totalsOf([
      gpu('a', {}),
      gpu('a1', {}, { facts: { mig } }),
      gpu('z1', {}, { facts: { mig: { ...mig, parentId: 'hidden' } } }),
    ])
    expect(totals).toMatchObject({ gpus: 2, migInstances: 1, memoryTotalBytes: 160 })
  })

  it('counts a process on two GPUs once, and nobody where the list cannot be read', () => {
    const both = [gpu('a', {}, { processes: [process(1, 'ada'), process(2, null)] }), gpu('b', {}, { processes: [process(1, 'ada')] })]
    expect(totalsOf(both)).toMatchObject({ processes: 2, users: 1 })
    expect(totalsOf([gpu('a', { processes: null })]).processes).toBeNull()
  })
})
