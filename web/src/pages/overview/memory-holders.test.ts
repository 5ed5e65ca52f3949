import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GpuSample, ProcessView } from '../../../../src/core/model.ts'
import { holdingOf } from './memory-holders.ts'

const GIB = 1024 ** 3

function sampleOf(figures: Partial<GpuSample>, processes: readonly ProcessView[] | null): GpuSample {
  return {
    memoryTotalBytes: 80 * GIB,
    memoryUsedBytes: 50 * GIB,
    memoryReservedBytes: GIB,
    ...figures,
    processes,
  } as GpuSample
}

function processOf(pid: number, gib: number | null, user: string | null = 'ada', startedAt = pid): ProcessView {
  const memoryUsedBytes = gib === null ? null : gib * GIB
  return { pid, memoryUsedBytes, gpu: 'g', info: user === null ? null : { user, name: 'python', startedAt } } as ProcessView
}

describe('holdingOf', () => {
  it('names who holds what, memory of unknown processes, the reserve of the driver and what is free', () => {
    const processes = [processOf(2, 8, 'bob'), processOf(1, 40)]
    const holding = holdingOf(sampleOf({}, processes), processes)
    expect(holding?.holders.map(({ label, bytes }) => [label, bytes / GIB])).toEqual([
      ['ada', 40],
      ['bob', 8],
      ['not attributed', 2],
      ['driver', 1],
      ['free', 29],
    ])
    expect(holding?.usedRatio).toBe(50 / 80)
  })

  it("gives the rest to the machine where the memory is the host's", () => {
    const processes = [processOf(1, 18)]
    const holding = holdingOf(sampleOf({ memoryReservedBytes: null }, processes), processes, true)
    expect(holding?.holders.map(({ label, bytes }) => [label, bytes / GIB])).toEqual([
      ['ada', 18],
      ['rest of the machine', 32],
      ['free', 30],
    ])
    expect(holding?.holders[1]?.title).toContain('shares the memory of the host')
  })

  it('gives no figure where the device gives none', () => {
    expect(holdingOf(sampleOf({ memoryUsedBytes: null }, []), [])).toBeNull()
    expect(holdingOf(sampleOf({ memoryTotalBytes: null }, []), [])).toBeNull()
  })

  it('keeps the color of a process when another grows beyond it', () => {
    const small = [processOf(1, 10), processOf(2, 20)]
    const large = [processOf(2, 20), processOf(1, 25)]
    const fills = (list: readonly ProcessView[]) =>
      holdingOf(sampleOf({}, list), list)?.holders.flatMap(({ pid, fill }) => (pid === null ? [] : [[pid, fill]]))
    expect(fills(large)).toEqual(fills(small))
  })

  it('sums the smallest when there are many', () => {
    const processes = Array.from({ length: 9 }, (_, index) => processOf(index + 1, index + 1))
    const holding = holdingOf(sampleOf({}, processes), processes)
    const shown = holding?.holders.filter(({ pid }) => pid !== null)
    expect(shown?.map(({ pid }) => pid)).toEqual([6, 7, 8, 9])
    expect(holding?.holders.find(({ key }) => key === 'more')).toMatchObject({ label: '5 more', bytes: 15 * GIB })
  })

  it('adds up to the total, whatever the readings say', () => {
    const bytes = fc.option(fc.integer({ min: 0, max: 100 * GIB }), { nil: null })
    const process = fc.record({ pid: fc.integer({ min: 1, max: 99 }), memoryUsedBytes: bytes })
    fc.assert(
      fc.property(
        bytes,
        bytes,
        fc.integer({ min: 1, max: 90 * GIB }),
        fc.array(process, { maxLength: 12 }),
        (used, reserved, total, list) => {
          const processes = list.map((one) => ({ ...one, gpu: 'g', info: null })) as unknown as ProcessView[]
          const figures = { memoryTotalBytes: total, memoryUsedBytes: used, memoryReservedBytes: reserved }
          const holding = holdingOf(sampleOf(figures, processes), processes)
          if (used === null) return holding === null
          const sum = holding?.holders.reduce((all, one) => all + one.bytes, 0)
          return sum === total && holding?.holders.every(({ bytes: part }) => part >= 0)
        },
      ),
    )
  })
})
