import { describe, expect, it } from 'vitest'
import type { HealthAnswer } from '../../answers.ts'
import { costsOf, totalOf } from './overhead.ts'

interface Parts {
  readonly at: number
  readonly agent: number
  readonly sampler: number | null
  readonly pid?: number
  readonly runId?: string
}

function health({ at, agent, sampler, pid = 2, runId = 'r' }: Parts): HealthAnswer {
  return {
    at,
    self: { pid: 1, runId, startedAt: 0, cpuSeconds: agent, residentBytes: 100 },
    sources: [{ source: 'nvidia', pid, cpuSeconds: sampler, residentBytes: 50 }],
  } as unknown as HealthAnswer
}

describe('costsOf', () => {
  const before = health({ at: 100_000, agent: 1, sampler: 0.5 })

  it('is the difference of the counters over the time between', () => {
    const costs = costsOf(before, health({ at: 110_000, agent: 1.2, sampler: 0.6 }))
    expect(costs.map(({ name, cpuRatio }) => [name, cpuRatio?.toFixed(3)])).toEqual([
      ['agent', '0.020'],
      ['sampler nvidia', '0.010'],
    ])
    expect(costs[0]?.meanCpuRatio).toBeCloseTo(1.2 / 110)
    expect(totalOf(costs)).toMatchObject({ residentBytes: 150 })
    expect(totalOf(costs).cpuRatio).toBeCloseTo(0.03)
  })

  it('knows nothing before the second answer, after a restart, or where the counter is not reported', () => {
    expect(costsOf(null, before).map(({ cpuRatio }) => cpuRatio)).toEqual([null, null])
    expect(costsOf(before, health({ at: 110_000, agent: 0.1, sampler: 0.6, runId: 'other' }))[0]?.cpuRatio).toBeNull()
    expect(costsOf(before, health({ at: 110_000, agent: 1.2, sampler: 0.9, pid: 3 }))[1]?.cpuRatio).toBeNull()
    expect(totalOf(costsOf(before, health({ at: 110_000, agent: 1.2, sampler: null }))).cpuRatio).toBeNull()
  })
})
