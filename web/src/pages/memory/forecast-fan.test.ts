import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findingWith } from '../../../../src/core/model.fixture.ts'
import { fanOf, forecastsOf } from './forecast-fan.ts'

const input = { now: 1000, usedBytes: 40, totalBytes: 100, pastMs: 1000 }

describe('fanOf', () => {
  it('goes from what is in use to full at the three moments', () => {
    const fan = fanOf(findingWith({ predictedAt: 2000, predictedEarliestAt: 1500, predictedLatestAt: 3000 }), input)
    expect(fan?.fan.at).toEqual([1000, 1500, 2000, 3000, 3240])
    expect(fan?.fan.high).toEqual([40, 100, 100, 100, 100])
    expect(fan?.fan.middle).toEqual([40, 70, 100, 100, 100])
    expect(fan?.fan.low).toEqual([40, 55, 70, 100, 100])
    expect(fan?.to).toBe(3240)
  })

  it('is none without a predicted time', () => {
    expect(fanOf(findingWith({}), input)).toBeNull()
  })

  it("begins at what a run's allocator needs, above what is not its own", () => {
    const evidence = { source: 'allocator', levelRatio: 0.5, capacityBytes: 80 }
    expect(fanOf(findingWith({ predictedAt: 2000, evidence }), input)?.fan.middle[0]).toBe(60)
  })

  it('cuts a far latest end, but never the expected one', () => {
    const far = fanOf(findingWith({ predictedAt: 2000, predictedLatestAt: 1e9 }), input)
    expect(far?.to).toBe(4000)
    expect(far?.fan.low.at(-1)).toBeLessThan(41)
    expect(fanOf(findingWith({ predictedAt: 1e6 }), input)?.to).toBeGreaterThan(1e6)
  })

  it('draws a moment that has passed as full now', () => {
    expect(fanOf(findingWith({ predictedAt: 500 }), input)?.fan.middle).toEqual([100, 100])
  })

  it('keeps its order: times ascend, low ≤ middle ≤ high ≤ total', () => {
    const moment = fc.option(fc.integer({ min: -5000, max: 100_000 }))
    fc.assert(
      fc.property(
        moment,
        moment,
        moment,
        fc.integer({ min: 0, max: 100 }),
        (predictedAt, predictedEarliestAt, predictedLatestAt, usedBytes) => {
          const fan = fanOf(findingWith({ predictedAt, predictedEarliestAt, predictedLatestAt }), { ...input, usedBytes })?.fan
          if (!fan) return predictedAt === null
          return fan.at.every((at, index) => {
            const [low = 0, middle = 0, high = 0] = [fan.low[index] ?? 0, fan.middle[index] ?? 0, fan.high[index] ?? 0]
            const isAscending = index === 0 || at > (fan.at[index - 1] ?? 0)
            return isAscending && low <= middle + 1e-9 && middle <= high + 1e-9 && high <= 100 && low >= usedBytes - 1e-9
          })
        },
      ),
    )
  })
})

describe('forecastsOf', () => {
  it('takes those of the GPU and of runs on it, the nearest first', () => {
    const gpu = { id: 'GPU-a', index: 1 }
    const list = [
      findingWith({ fingerprint: 'device', subject: { gpu: 'GPU-a', gpuIndex: 1 }, predictedAt: 20 }),
      findingWith({ fingerprint: 'run', subject: { run: 'r', gpuIndex: 1 }, predictedAt: 10 }),
      findingWith({ fingerprint: 'other', subject: { gpu: 'GPU-b', gpuIndex: 0 }, predictedAt: 1 }),
      findingWith({ fingerprint: 'leak', detector: 'leak', subject: { gpu: 'GPU-a' } }),
      findingWith({ fingerprint: 'mig', subject: { gpu: 'MIG-c', gpuIndex: 1 } }),
    ]
    expect(forecastsOf(list, gpu).map(({ fingerprint }) => fingerprint)).toEqual(['run', 'device'])
  })
})
