import { describe, expect, it } from 'vitest'
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, RunLoader, TrainingStep } from '../core/model.ts'
import { checkpointHeavy } from './checkpoint-heavy.ts'
import { copyBound } from './copy-bound.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { evalHeavy } from './eval-heavy.ts'
import { run, START, step } from './inputs.fixture.ts'
import { slowData } from './slow-data.ts'
import { syncBound } from './sync-bound.ts'

type Phases = TrainingStep['phaseSeconds']
const steps = (count: number, phases: (index: number) => Phases, stepSeconds = 1, rank = 0): DetectorInput[] =>
  Array.from({ length: count }, (_, index) => step(START + index * 1000 + rank, index, { stepSeconds, rank, phaseSeconds: phases(index) }))
/** Every `every`th step takes `seconds` more. */
const nowAndThen = (count: number, phase: string, seconds: (index: number) => number, every = 10): DetectorInput[] =>
  Array.from({ length: count }, (_, index) => {
    const more = index % every === every - 1 ? seconds(index) : 0
    return step(START + index * 10_000, index, {
      stepSeconds: 1 + more,
      phaseSeconds: { forward: 0.5, ...(more > 0 ? { [phase]: more } : {}) },
    })
  })
const ranks = (count: number, sync: (rank: number, index: number) => number): DetectorInput[] =>
  Array.from({ length: count }, (_, index) =>
    [0, 1].map((rank) =>
      step(START + index * 1000 + rank, index, { rank, stepSeconds: 1, phaseSeconds: { forward: 0.3, sync: sync(rank, index) } }),
    ),
  ).flat()
const feedTo = <O>(kind: DetectorKind<O>, inputs: readonly DetectorInput[]): Finding[] => feed(kind.create(kind.defaults), inputs)

for (const [kind, phase] of [
  [slowData, 'data'],
  [copyBound, 'copy'],
] as const)
  detectorContract({ kind, trouble: () => steps(400, (index) => ({ [phase]: index < 200 ? 0.6 : 0.02, forward: 0.3 })) })
detectorContract({ kind: syncBound, trouble: () => ranks(400, (_, index) => (index < 200 ? 0.6 : 0.02)) })
detectorContract({ kind: checkpointHeavy, trouble: () => nowAndThen(200, 'checkpoint', (index) => (index < 100 ? 5 : 0.1)) })
detectorContract({ kind: evalHeavy, trouble: () => nowAndThen(200, 'evaluation', (index) => (index < 100 ? 8 : 0.1)) })

describe('slow_data', () => {
  it('says how much of a step is waiting', () => {
    const found = feedTo(
      slowData,
      steps(200, () => ({ data_wait: 0.002613 }), 0.00653),
    )
    expect(found[0]?.message).toBe('Run run-1 is input-bound: 40% of each step waits for data (2.6 ms of 6.5 ms).')
    expect(found[0]).toMatchObject({ severity: 'warning', evidence: { phase_ratio: 0.400153 } })
  })

  it('says how many workers would help, where the run says how many it has', () => {
    const advice = (ratio: number, loader: RunLoader | null) => {
      return feedTo(slowData, [run({ loader }), ...steps(200, () => ({ data: ratio }), 1)]).at(-1)?.advice[0] ?? ''
    }
    expect(advice(0.4, null)).toMatch(/^Use more data loader workers/)
    expect(advice(0.5, { workers: 8, isPinned: false, cpus: 64 })).toMatch(
      /^8 more data loader workers or pinned memory would help \(num_workers=16 instead of 8\)/,
    )
    expect(advice(0.4, { workers: 0, isPinned: true, cpus: 64 })).toMatch(
      /^1 more data loader worker would help \(num_workers=1 instead of 0\)/,
    )
    expect(advice(0.75, { workers: 4, isPinned: true, cpus: 8 })).toMatch(/^4 more .*no CPUs for the 12 /)
    expect(advice(0.5, { workers: 8, isPinned: true, cpus: 8 })).toMatch(/^All 8 CPUs load data already/)
  })

  it('is information from a tenth on, and silent below or where the phase is not measured', () => {
    expect(
      feedTo(
        slowData,
        steps(200, () => ({ data: 0.12 })),
      )[0]?.severity,
    ).toBe('info')
    expect(
      feedTo(
        slowData,
        steps(200, () => ({ data: 0.08 })),
      ),
    ).toEqual([])
    expect(
      feedTo(
        slowData,
        steps(200, () => ({ forward: 0.5 })),
      ),
    ).toEqual([])
    expect(
      feedTo(
        slowData,
        steps(200, () => null),
      ),
    ).toEqual([])
  })

  it('is silent about workers that start, and about one slow step', () => {
    expect(
      feedTo(
        slowData,
        steps(400, (index) => ({ data: index === 0 ? 500 : 0.01 })),
      ),
    ).toEqual([])
    expect(
      feedTo(
        slowData,
        steps(400, (index) => ({ data: index === 130 ? 100 : 0.01 })),
      ),
    ).toEqual([])
  })

  it('finds batches that come in bursts: every eighth step waits for eight', () => {
    expect(
      feedTo(
        slowData,
        steps(200, (index) => ({ data: index % 8 === 0 ? 0.8 : 0 }), 0.1),
      )[0]?.severity,
    ).toBe('warning')
  })

  it('believes the GPU: a host that waits while the GPU works is no problem', () => {
    expect(
      feedTo(
        slowData,
        steps(300, (index) => ({ data: 0.6, ...(index % 3 === 0 ? { 'data@gpu': 0.01, 'forward@gpu': 0.9 } : {}) })),
      ),
    ).toEqual([])
    const found = feedTo(
      slowData,
      steps(400, (index) => ({ data: 0.01, ...(index % 2 === 0 ? { 'data@gpu': 0.5, 'forward@gpu': 0.4 } : {}) })),
    )
    expect(found[0]?.evidence.phase_ratio).toBeCloseTo(0.5)
  })

  it('leaves evaluation and checkpoints out of the step', () => {
    const found = feedTo(
      slowData,
      steps(200, (index) => ({ data: 0.3, evaluation: index % 10 === 0 ? 50 : 0 }), 1),
    )
    expect(Number(found[0]?.evidence.phase_ratio)).toBeGreaterThan(0.28)
  })
})

describe('sync_bound', () => {
  it('is silent where one rank does not wait: the others wait for that one', () => {
    expect(
      feedTo(
        syncBound,
        ranks(300, (rank) => (rank === 0 ? 0.5 : 0.01)),
      ),
    ).toEqual([])
  })
})

describe('checkpoint_heavy', () => {
  it('counts as many checkpoints as gaps between them', () => {
    const [found] = feedTo(
      checkpointHeavy,
      nowAndThen(60, 'checkpoint', () => 5),
    )
    expect(found?.message).toBe('Run run-1 spends 33% of its time saving checkpoints.')
    expect(
      feedTo(
        checkpointHeavy,
        nowAndThen(300, 'checkpoint', () => 0.5),
      ),
    ).toEqual([])
  })

  it('does not judge by the first two', () => {
    expect(
      feedTo(
        checkpointHeavy,
        nowAndThen(38, 'checkpoint', () => 5),
      ),
    ).toEqual([])
  })
})
