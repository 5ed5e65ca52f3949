import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { device, GPU, gpu, host, run as runInput, START, step } from './inputs.fixture.ts'
import { random } from './random.fixture.ts'
import { straggler } from './straggler.ts'

interface Shape {
  readonly ranks?: number
  readonly noise?: number
  readonly seed?: number
  factor?(rank: number, number: number): number
  extra?(rank: number, seconds: number): object
}

function job(steps: number, shape: Shape = {}): DetectorInput[] {
  const { normal } = random(shape.seed ?? 1)
  const inputs: DetectorInput[] = [gpu(START)]
  for (let number = 0; number < steps; number++)
    for (let rank = 0; rank < (shape.ranks ?? 8); rank++) {
      const seconds = Math.exp((shape.noise ?? 0.02) * normal()) * (shape.factor?.(rank, number) ?? 1)
      inputs.push(step(START + number * 1000 + rank, number, { rank, stepSeconds: seconds, ...shape.extra?.(rank, seconds) }))
    }
  return inputs
}
const slowFrom = (from: number, to: number, by: number) => ({
  factor: (rank: number, number: number) => (rank === 3 && number >= from && number < to ? by : 1),
})

detectorContract({ kind: straggler, trouble: () => job(160, slowFrom(60, 100, 1.5)) })

describe('straggler', () => {
  const run = (inputs: DetectorInput[]) => feed(straggler.create(straggler.defaults), inputs)

  it('finds a rank that becomes a fifth slower within four steps', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const found = run(job(120, { ...slowFrom(60, 120, 1.2), seed }))
      expect(found[0]?.subject).toMatchObject({ run: 'run-1', rank: 3 })
      expect(Number(found[0]?.evidence.step)).toBeLessThanOrEqual(64)
    }
  })

  it('finds one that is slow from the first step', () => {
    expect(run(job(40, slowFrom(0, 40, 1.4)))[0]?.subject.rank).toBe(3)
  })

  it('is silent over ten thousand steps of honest noise', () => {
    for (const noise of [0.01, 0.05, 0.1]) expect(run(job(1300, { noise, seed: 7 }))).toEqual([])
  })

  it('is silent when everybody slows down together', () => {
    expect(run(job(200, { factor: (_, number) => (number > 100 ? 3 : 1) }))).toEqual([])
  })

  it('bears with a rank that is always a little slower, and with one slow step', () => {
    expect(run(job(400, { factor: (rank) => (rank === 2 ? 1.1 : 1) }))).toEqual([])
    expect(run(job(400, { factor: (rank, number) => (rank === 2 && number % 100 === 50 ? 4 : 1) }))).toEqual([])
  })

  it('looks behind the waiting: the slow one is who waits least', () => {
    const extra = (rank: number, seconds: number) => ({
      stepSeconds: 1.6,
      phaseSeconds: { sync: 1.6 - Math.min(1.6, seconds * (rank === 3 ? 1.5 : 1)) },
    })
    const found = run(job(60, { extra }))
    expect(new Set(found.map((finding) => finding.subject.rank))).toEqual(new Set([3]))
  })

  it('finds the shortest backward where the wait is a part of it, and says what the rank is slow in', () => {
    const slow = (phase: string) => ({
      ranks: 2,
      extra: (rank: number, seconds: number) => {
        const own = { data: 0.005, forward: 0.02 * seconds, [phase]: rank === 1 ? 0.07 * seconds : 0.02 * seconds }
        const before = Object.values(own).reduce((sum, value) => sum + value, 0)
        return { stepSeconds: 0.12, phaseSeconds: { ...own, backward: 0.12 - before } }
      },
    })
    for (const [phase, words] of [
      ['forward', 'in the forward'],
      ['data', 'waiting for data'],
    ] as const) {
      const found = run(job(60, slow(phase)))
      expect(new Set(found.map((finding) => finding.subject.rank))).toEqual(new Set([1]))
      expect(found[0]?.message).toContain(`most of it ${words}.`)
    }
  })

  it('goes by the step where ranks do not wait for each other: a long backward is work then', () => {
    const extra = (rank: number, seconds: number) => ({
      stepSeconds: seconds * (rank === 1 ? 1.6 : 1),
      phaseSeconds: { forward: 0.3, backward: rank === 1 ? 1.2 : 0.6 },
    })
    const found = run(job(60, { ranks: 4, extra }))
    expect(new Set(found.map((finding) => finding.subject.rank))).toEqual(new Set([1]))
  })

  it('believes the clock of the GPU, which knows who waited', () => {
    const extra = (rank: number) => ({
      stepSeconds: 1,
      phaseSeconds: { sync: 0.001, 'sync@gpu': rank === 2 ? 0.01 : 0.5, 'data@gpu': 0.01 },
    })
    const found = run(job(60, { extra }))
    expect(new Set(found.map((finding) => finding.subject.rank))).toEqual(new Set([2]))
  })

  it('compares only within a pipeline stage', () => {
    const stages = {
      factor: (rank: number) => (rank < 4 ? 1 : 2),
      extra: (rank: number) => ({ custom: { pipeline_stage: rank < 4 ? 0 : 1 } }),
    }
    expect(run(job(200, stages))).toEqual([])
  })

  it('compares only within a tensor-parallel group', () => {
    const groups = { factor: (rank: number) => (rank < 4 ? 1 : 2), extra: (rank: number) => ({ custom: { tensor_group: rank >> 2 } }) }
    expect(run(job(200, groups))).toEqual([])
    const slow = { ...groups, factor: (rank: number) => (rank < 4 ? 1 : 2) * (rank === 5 ? 1.6 : 1) }
    expect(new Set(run(job(200, slow)).map((finding) => finding.subject.rank))).toEqual(new Set([5]))
  })

  it('learns the stage of a rank from a later step', () => {
    const later = (rank: number, number: number) => (number === 5 ? { pipeline_stage: rank < 4 ? 0 : 1 } : null)
    const inputs = job(200, { factor: (rank, number) => (rank >= 4 && number > 5 ? 2 : 1) }).map((input) =>
      input.type === 'step' ? { ...input, step: { ...input.step, custom: later(input.step.rank, input.step.step) } } : input,
    )
    expect(run(inputs)).toEqual([])
  })

  it('does not compare a rank with a larger batch', () => {
    const extra = (rank: number, seconds: number) => {
      const tokens = rank === 3 ? 3000 : 2000
      const stepSeconds = seconds * (rank === 3 ? 1.5 : 1)
      return { stepSeconds, custom: { tokens_per_second: tokens / stepSeconds } }
    }
    expect(run(job(200, { extra }))).toEqual([])
    const even = (_: number, seconds: number) => ({ stepSeconds: seconds, custom: { tokens_per_second: 2000 / seconds } })
    expect(run(job(120, { ...slowFrom(60, 120, 1.4), extra: even }))[0]?.subject.rank).toBe(3)
  })

  describe('says where the rank is, and the likely reason', () => {
    const places = [0, 1, 2, 3].map((rank) => ({ rank, host: 'node7', gpu: rank === 3 ? GPU : 'other', pid: 70 + rank }))
    const slow = job(120, { ...slowFrom(60, 120, 1.4), ranks: 4 })
    const found = (...before: DetectorInput[]) => run([device(), runInput({ places }), ...before, ...slow])[0]

    it('of a GPU that is too hot', () => {
      const finding = found(host(START, { hostname: 'node7' }), gpu(START + 55_000, { clockEventReasons: 0x20, temperatureCelsius: 91 }))
      expect(finding?.message).toContain('Rank 3 of run run-1 (node7, GPU 0) is slow')
      expect(finding?.message).toContain('; likely because its GPU is throttled (too hot, 91 °C).')
      expect(finding?.subject).toMatchObject({ host: 'node7', gpuIndex: 0, rank: 3 })
    })

    it('of a link with errors', () => {
      const errors = [0, 5].map((pcieReplayCount, index) => gpu(START + 54_000 + index * 1000, { pcieReplayCount }))
      expect(found(host(START, { hostname: 'node7' }), ...errors)?.message).toContain('likely because the link of its GPU has errors.')
    })

    it('of a busy host', () => {
      expect(found(host(START, { hostname: 'node7', cpuRatio: 0.99 }))?.message).toContain(
        'likely because the CPU of its host is busy (99%).',
      )
    })

    it('only of its own machine, and of late', () => {
      const hot = gpu(START - 600_000, { clockEventReasons: 0x20 })
      expect(found(host(START, { hostname: 'node7' }), hot)?.message).not.toContain('likely')
      expect(found(host(START, { hostname: 'node8', cpuRatio: 0.99 }))?.message).not.toContain('likely')
    })
  })

  it('is silent for the stages of a pipeline that nobody named', () => {
    const stages = [1, 1.1, 1.2, 1.6]
    expect(run(job(200, { ranks: 16, factor: (rank) => stages[rank >> 2] ?? 1 }))).toEqual([])
  })

  it('is silent where the steps of all ranks are of two lengths, each for a while', () => {
    const { uniform } = random(5)
    const long = new Array<boolean>(8).fill(false)
    const factor = (rank: number) => {
      if (uniform() < 0.1) long[rank] = !long[rank]
      return long[rank] ? 1.3 : 1
    }
    expect(run(job(400, { factor }))).toEqual([])
  })

  it('has nothing to compare with one rank, and can do with two', () => {
    expect(run(job(100, { ranks: 1 }))).toEqual([])
    expect(run(job(100, { ranks: 2, factor: (rank) => (rank === 1 ? 1.5 : 1) })).map((finding) => finding.subject.rank)).toContain(1)
  })
})
