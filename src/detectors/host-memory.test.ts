import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { Finding, MemoryLimit } from '../core/model.ts'
import { feed } from './detector.contract.ts'
import { GIB, host, run, START, step } from './inputs.fixture.ts'
import { leak } from './leak.ts'
import { oom } from './oom.ts'
import { random } from './random.fixture.ts'

const TOTAL = 64 * GIB
const EVERY_MS = 2000

interface Story {
  readonly minutes: number
  /** Of the tree, in bytes, by seconds. */
  readonly bytes: (second: number) => number
  /** The first step; null: none. */
  readonly firstStep?: number | null
  readonly limit?: (second: number) => MemoryLimit | null
  /** Of the host besides, in bytes. */
  readonly others?: (second: number) => number
}

function inputs({ minutes, bytes, firstStep = 5, limit = () => null, others = () => 8 * GIB }: Story): DetectorInput[] {
  const told: DetectorInput[] = [run({ id: 'r', startedAt: START })]
  for (let at = 0; at < minutes * 60_000; at += EVERY_MS) {
    const second = at / 1000
    const used = bytes(second)
    const all = Math.min(TOTAL, used + others(second))
    told.push(
      host(START + at, {
        memoryTotalBytes: TOTAL,
        memoryUsedBytes: all,
        memoryAvailableBytes: TOTAL - all,
        swapTotalBytes: 0,
        swapUsedBytes: 0,
        trees: [{ pid: 7, run: 'r', processes: 3, bytes: used, limit: limit(second) }],
      }),
    )
    if (firstStep !== null && second >= firstStep) told.push(step(START + at + 1, Math.round(second), { run: 'r', loss: 1 }))
  }
  return told
}

const leaks = (story: Story): Finding[] => feed(leak.create(leak.defaults), inputs(story)).filter(({ state }) => state === 'active')
const alarms = (story: Story): Finding[] =>
  feed(oom.create(oom.defaults), inputs(story)).filter(({ state, severity }) => state === 'active' && severity !== 'info')

const noise = (seed: number, size: number) => {
  const { uniform } = random(seed)
  return () => size * uniform()
}

describe('a leak of host memory', () => {
  it.each([
    ['tensors kept on the CPU, 10 MiB a second', (second: number) => 2 * GIB + second * 10 * 1024 ** 2, 15],
    ['a list that grows slowly, 300 MiB a minute', (second: number) => 1 * GIB + (second / 60) * 300 * 1024 ** 2, 30],
    [
      'workers that grow, with the noise of batches',
      (second: number) => 3 * GIB + second * 4 * 1024 ** 2 + (second % 7) * 20 * 1024 ** 2,
      40,
    ],
  ] as const)('is found: %s', (_, bytes, minutes) => {
    const [found] = leaks({ minutes, bytes })
    expect(found).toMatchObject({ detector: 'leak', severity: 'warning', subject: { run: 'r', rank: null, pid: null } })
    expect(found?.evidence.source).toBe('host memory')
    expect(found?.message).toMatch(/^Run r \(3 processes\) leaks .* of host memory: .*the host will be full/)
  })

  it('says when the host will be full, not when a part of it is', () => {
    const [found] = leaks({ minutes: 15, bytes: (second) => 2 * GIB + second * 10 * 1024 ** 2 })
    const left = TOTAL - 8 * GIB - 2 * GIB - ((found?.at ?? 0) - START) * 10 * 1024 * 1.024
    expect(Number(found?.evidence.roomBytes)).toBeGreaterThan(0.9 * left)
    expect(Number(found?.evidence.roomBytes)).toBeLessThan(1.1 * left)
  })

  it('ends with its run', () => {
    const story = inputs({ minutes: 15, bytes: (second) => 2 * GIB + second * 10 * 1024 ** 2 })
    const findings = feed(leak.create(leak.defaults), [...story, run({ id: 'r', endedAt: START + 900_000, outcome: 'success' })])
    expect(findings.at(-1)).toMatchObject({ state: 'resolved' })
  })

  const healthy: readonly (readonly [string, Story])[] = [
    ['a dataset that is loaded at the start', { minutes: 30, firstStep: 400, bytes: (second) => Math.min(20, second / 15) * GIB + GIB }],
    ['the same without steps', { minutes: 30, firstStep: null, bytes: (second) => Math.min(18, second / 15) * GIB + GIB }],
    ['a cache that fills and stays', { minutes: 60, bytes: (second) => 4 * GIB + 2 * GIB * (1 - Math.exp(-second / 200)) }],
    [
      'workers that are started anew each epoch',
      { minutes: 60, bytes: (second) => 2 * GIB + (second % 300 < 270 ? 3 * GIB * ((second % 300) / 300) : 0) },
    ],
    ['an evaluation now and then', { minutes: 60, bytes: (second) => 2 * GIB + (second % 600 < 60 ? 4 * GIB : 0) }],
    ['checkpoints that are gathered on the host', { minutes: 60, bytes: (second) => 5 * GIB + (second % 900 > 870 ? 10 * GIB : 0) }],
  ]

  it.each(healthy)('is not: %s', (_, story) => {
    expect(leaks(story)).toEqual([])
  })

  it('is not what only goes up and down by chance', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.integer({ min: 1, max: 16 }),
        fc.double({ min: 0.01, max: 0.4, noNaN: true }),
        (seed, base, size) => {
          const shake = noise(seed, size)
          expect(leaks({ minutes: 40, bytes: () => base * GIB * (1 + shake()) })).toEqual([])
        },
      ),
      { numRuns: 30 },
    )
  })

  it('is found whatever the noise, if it is steady', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.double({ min: 5, max: 60, noNaN: true }), (seed, mibPerSecond) => {
        const shake = noise(seed, 0.01)
        const found = leaks({ minutes: 30, bytes: (second) => 2 * GIB * (1 + shake()) + second * mibPerSecond * 1024 ** 2 })
        expect(found.length).toBeGreaterThan(0)
      }),
      { numRuns: 20 },
    )
  })
})

describe('host memory that will run out', () => {
  it('is forecast for the machine', () => {
    const found = alarms({ minutes: 40, bytes: (second) => 2 * GIB + second * 25 * 1024 ** 2 })
    expect(found[0]).toMatchObject({ detector: 'oom', subject: { host: 'node-1', run: null, gpu: null } })
    expect(found[0]?.message).toMatch(/^Host node-1 will run out of host memory in /)
    expect(found[0]?.evidence.source).toBe('host memory')
    const full = START + ((54 * GIB) / (25 * 1024 ** 2)) * 1000
    expect(Math.abs((found.at(-1)?.predictedAt ?? 0) - full)).toBeLessThan(300_000)
  })

  it('is forecast for a limit that is tighter than the machine', () => {
    const limitBytes = 16 * GIB
    const found = alarms({
      minutes: 20,
      bytes: (second) => 2 * GIB + second * 10 * 1024 ** 2,
      limit: (second) => ({ usedBytes: Math.min(limitBytes, 2 * GIB + second * 10 * 1024 ** 2), limitBytes }),
    })
    expect(found[0]?.subject).toMatchObject({ run: 'r', rank: null })
    expect(found[0]?.message).toMatch(/^Run r will run out of host memory in .* of 16\.0 GiB/)
  })

  it.each([
    [
      'a dataset that takes a third of the host',
      { minutes: 30, firstStep: 300, bytes: (second: number) => Math.min(22, second / 12) * GIB },
    ],
    ['a host that is steadily in use', { minutes: 60, bytes: () => 40 * GIB }],
    [
      'others that come and go',
      { minutes: 60, bytes: () => 4 * GIB, others: (second: number) => (8 + 20 * Math.abs(Math.sin(second / 300))) * GIB },
    ],
  ] as const)('is not: %s', (_, story) => {
    expect(alarms(story)).toEqual([])
  })

  it('asks for more evidence with less sensitivity', () => {
    const story = inputs({ minutes: 40, bytes: (second) => 2 * GIB + second * 35 * 1024 ** 2 })
    const first = (caution: number) => feed(leak.create({ ...leak.defaults, caution }), story)[0]?.at ?? Number.POSITIVE_INFINITY
    expect(first(2)).toBeGreaterThan(first(1))
  })
})
