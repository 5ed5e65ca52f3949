import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLOCK_REASON } from '../core/gpu-words.ts'
import type { HubEvent } from '../core/kinds.ts'
import { cardWith, processWith, runWith, sampleWith } from '../core/model.fixture.ts'
import type { GpuInfo, GpuProcess, GpuSample, ProcessInfo, ProcessView } from '../core/model.ts'
import { NO_FIGURES } from '../core/record.ts'
import { Book } from './book.ts'
import { Counter } from './counter.ts'
import { infoWith } from './month.fixture.ts'
import { HOUR_MS, NOBODY, type Sum, type UsageRow } from './row.ts'

const T = Date.UTC(2026, 10, 16, 6)
const GIB = 1024 ** 3

type Process = GpuProcess & { readonly info?: ProcessInfo | null }

class Bench {
  readonly book = new Book()
  readonly counter = new Counter(this.book, 10_000)

  constructor(...gpus: readonly GpuInfo[]) {
    this.counter.accept({ type: 'devices', devices: gpus })
  }

  tick(at: number, gpus: readonly [id: string, parts: Partial<GpuSample>, processes?: readonly Process[]][]): void {
    const processes: ProcessView[] = []
    const samples = gpus.map(([id, parts, own = []]) => {
      for (const { info = null, ...process } of own) processes.push({ ...process, gpu: id, info })
      return sampleWith(id, at, { processes: own, ...parts })
    })
    this.counter.accept({
      type: 'tick',
      tick: { seq: 0, at, source: 'nvidia', provenance: 'live', gpus: samples, processes, host: null, events: [] },
    })
  }

  rows(): UsageRow[] {
    this.counter.settle()
    return [...this.book.hours.values()].flatMap(({ rows }) => [...rows.values()])
  }

  of(user: string, sum: Sum = 'gpuSeconds'): number {
    return this.rows()
      .filter((row) => row.user === user)
      .reduce((total, row) => total + row[sum], 0)
  }
}

const ada = (pid: number, parts: Partial<ProcessInfo> = {}) => infoWith(pid, { user: 'ada', startedAt: T - 1000, ...parts })
const of = (pid: number, info: ProcessInfo | null, parts: Partial<GpuProcess> = {}): Process => ({
  ...processWith(pid, { memoryUsedBytes: GIB, ...parts }),
  info,
})

describe('what is counted', () => {
  it('counts the time between two samples, and nothing before the first', () => {
    const bench = new Bench(cardWith(0))
    for (const second of [0, 1, 2, 3])
      bench.tick(T + second * 1000, [
        ['GPU-0', { utilizationRatio: 0.5, memoryUsedBytes: GIB, powerWatts: 300, smActiveRatio: 0.25 }, [of(1, ada(1))]],
      ])
    expect(bench.rows()).toMatchObject([
      { user: 'ada', gpuSeconds: 3, busySeconds: 1.5, smSeconds: 0.75, energyJoules: 900, memoryByteSeconds: 3 * GIB, idleSeconds: 0 },
    ])
  })

  it('counts no gap: asleep, restarted, or a clock that was set', () => {
    const bench = new Bench(cardWith(0))
    for (const at of [T, T + 1000, T + 3_600_000, T + 3_601_000, T - 5000, T - 4000])
      bench.tick(at, [['GPU-0', { utilizationRatio: 1 }, [of(1, ada(1))]]])
    expect(bench.of('ada')).toBe(3)
  })

  it('counts nothing of a card that is lost or cannot be read, and a card that sleeps as free', () => {
    const bench = new Bench(cardWith(0))
    bench.tick(T, [['GPU-0', {}, []]])
    bench.tick(T + 1000, [['GPU-0', { state: 'lost', processes: null }]])
    bench.tick(T + 2000, [['GPU-0', { state: 'error', processes: null }]])
    bench.tick(T + 3000, [['GPU-0', { state: 'suspended', processes: null }]])
    expect(bench.of(NOBODY)).toBe(1)
  })

  it('splits a span at the full hour', () => {
    const bench = new Bench(cardWith(0))
    bench.tick(T + HOUR_MS - 400, [['GPU-0', {}, [of(1, ada(1))]]])
    bench.tick(T + HOUR_MS + 600, [['GPU-0', { powerWatts: 100 }, [of(1, ada(1))]]])
    const rows = bench.rows().filter(({ user }) => user === 'ada')
    expect(rows.map(({ hour, gpuSeconds, energyJoules }) => [hour - T, gpuSeconds, energyJoules])).toEqual([
      [0, 0.4, 40],
      [HOUR_MS, 0.6, 60],
    ])
  })

  it('follows a process to another GPU, another user and another job', () => {
    const bench = new Bench(cardWith(0), cardWith(1))
    const moves: [number, Process][] = [
      [0, of(1, ada(1))],
      [0, of(1, ada(1))],
      [1, of(1, ada(1))],
      [1, of(1, infoWith(1, { user: 'ben', startedAt: T - 1000 }))],
      [1, of(1, infoWith(1, { user: 'ben', startedAt: T - 1000, pod: 'p-1' }))],
    ]
    moves.forEach(([on, process], second) => {
      bench.tick(T + second * 1000, [
        ['GPU-0', {}, on === 0 ? [process] : []],
        ['GPU-1', {}, on === 1 ? [process] : []],
      ])
    })
    const held = bench.rows().filter(({ user }) => user !== NOBODY)
    expect(held.map(({ gpu, user, job, gpuSeconds }) => [gpu, user, job, gpuSeconds])).toEqual([
      ['GPU-0', 'ada', null, 1],
      ['GPU-1', 'ada', null, 1],
      ['GPU-1', 'ben', null, 1],
      ['GPU-1', 'ben', 'pod:p-1', 1],
    ])
  })

  it('does not give a later user of a PID what the earlier one used, nor the other way around', () => {
    const bench = new Bench(cardWith(0))
    bench.tick(T, [['GPU-0', { utilizationRatio: 0 }, [of(7, ada(7))]]])
    bench.tick(T + 1000, [['GPU-0', { utilizationRatio: 0 }, [of(7, ada(7))]]])
    bench.tick(T + 2000, [['GPU-0', { utilizationRatio: 0 }, [of(7, infoWith(7, { user: 'ben', startedAt: T + 1500 }))]]])
    expect([bench.of('ada'), bench.of('ben')]).toEqual([1, 1])
  })

  it('waits a moment for the owner of a new process, and calls it unknown when nobody can tell', () => {
    const bench = new Bench(cardWith(0))
    for (let second = 0; second <= 40; second++)
      bench.tick(T + second * 1000, [
        [
          'GPU-0',
          {},
          second === 0 ? [] : [of(1, second > 3 ? ada(1) : null, { memoryUsedBytes: GIB }), of(2, null, { memoryUsedBytes: GIB })],
        ],
      ])
    expect([bench.of('ada'), bench.of('unknown')]).toEqual([20, 20])
    expect(bench.rows().every(({ gpuSeconds, user }) => gpuSeconds > 0 || user === NOBODY)).toBe(true)
  })

  it('names a user without a name by the number, and jobs by what the host knows', () => {
    const bench = new Bench(cardWith(0))
    for (const second of [0, 1])
      bench.tick(T + second * 1000, [
        [
          'GPU-0',
          {},
          [
            of(1, infoWith(1, { uid: 1234, container: 'docker:4f1c', startedAt: T })),
            of(2, infoWith(2, { user: 'ada', slurmJob: '77', pod: 'x', startedAt: T })),
          ],
        ],
      ])
    expect(bench.rows().map(({ user, job }) => [user, job])).toEqual([
      ['uid 1234', 'docker:4f1c'],
      ['ada', 'slurm:77'],
    ])
  })

  it('splits a shared card: time by memory, work by activity where it is known', () => {
    const bench = new Bench(cardWith(0))
    const both = [
      of(1, ada(1), { memoryUsedBytes: 3 * GIB, smRatio: 0.2 }),
      of(2, infoWith(2, { user: 'ben' }), { memoryUsedBytes: GIB, smRatio: 0.6 }),
    ]
    for (const second of [0, 1, 2, 3, 4])
      bench.tick(T + second * 1000, [['GPU-0', { utilizationRatio: 0.8, powerWatts: 100, memoryUsedBytes: 5 * GIB }, both]])
    expect([bench.of('ada'), bench.of('ben')]).toEqual([3, 1])
    expect([bench.of('ada', 'busySeconds'), bench.of('ben', 'busySeconds')].map((value) => value.toFixed(3))).toEqual(['0.800', '2.400'])
    expect([bench.of('ada', 'energyJoules'), bench.of('ben', 'energyJoules')].map(Math.round)).toEqual([100, 300])
    expect(bench.of(NOBODY, 'memoryByteSeconds')).toBe(4 * GIB)
    expect(bench.of(NOBODY)).toBe(0)
  })

  it('does not take a desktop for a holder', () => {
    const bench = new Bench(cardWith(0))
    for (const second of [0, 1])
      bench.tick(T + second * 1000, [['GPU-0', {}, [of(1, ada(1), { type: 'graphics', memoryUsedBytes: 50e6 })]]])
    expect([bench.of('ada'), bench.of(NOBODY)]).toEqual([0, 1])
  })

  it('counts memory without work as idle after a minute, and not what is not known', () => {
    const bench = new Bench(cardWith(0))
    for (let second = 0; second <= 200; second++)
      bench.tick(T + second * 1000, [['GPU-0', { utilizationRatio: second === 150 ? 0.3 : 0 }, [of(1, ada(1))]]])
    // 0–149: beyond the first minute; 151–200 is too short again.
    expect(bench.of('ada', 'idleSeconds')).toBe(149 - 60)
    const unknown = new Bench(cardWith(0))
    for (let second = 0; second <= 200; second++) unknown.tick(T + second * 1000, [['GPU-0', {}, [of(1, ada(1))]]])
    expect(unknown.of('ada', 'idleSeconds')).toBe(0)
  })

  it('counts work with clocks held down by heat, not by a power cap, and not rest', () => {
    const bench = new Bench(cardWith(0))
    const reasons = [CLOCK_REASON.softwarePowerCap, CLOCK_REASON.hardwareThermal, CLOCK_REASON.hardwarePowerBrake]
    for (const [second, clockEventReasons] of [0, ...reasons].entries())
      bench.tick(T + second * 1000, [['GPU-0', { utilizationRatio: 1, clockEventReasons }, [of(1, ada(1))]]])
    bench.tick(T + 4000, [['GPU-0', { utilizationRatio: 0, clockEventReasons: CLOCK_REASON.hardwareThermal }, [of(1, ada(1))]]])
    expect(bench.of('ada', 'throttledSeconds')).toBe(2)
  })

  it('counts MIG instances as their share of the card, with their share of its power', () => {
    const part = (instance: number, profile: string) =>
      cardWith(0, {
        id: `MIG-${instance}`,
        label: `0:${instance}`,
        mig: { parentId: 'GPU-0', gpuInstanceId: instance, computeInstanceId: 0, profile },
      })
    const bench = new Bench(cardWith(0, { migMode: 'enabled' }), part(1, '1g.10gb'), part(2, '3g.40gb'))
    for (const second of [0, 1, 2, 3, 4, 5, 6, 7])
      bench.tick(T + second * 1000, [
        ['GPU-0', { powerWatts: 70, processes: null, memoryUsedBytes: 9 * GIB }],
        ['MIG-1', { utilizationRatio: 1, memoryUsedBytes: GIB }, [of(1, ada(1))]],
        ['MIG-2', { memoryUsedBytes: 0 }, []],
      ])
    expect(bench.of('ada')).toBeCloseTo(1)
    expect(bench.of(NOBODY)).toBeCloseTo(6)
    expect(bench.of('ada', 'energyJoules')).toBeCloseTo(70)
    expect(bench.of(NOBODY, 'energyJoules')).toBeCloseTo(6 * 70)
    expect(bench.of('ada', 'memoryByteSeconds') + bench.of(NOBODY, 'memoryByteSeconds')).toBeCloseTo(7 * GIB)
  })

  it('keeps simulated GPUs apart, and calls a card in use without a process list unknown', () => {
    const bench = new Bench(cardWith(0, { provenance: 'simulated' }), cardWith(1))
    for (const second of [0, 1])
      bench.tick(T + second * 1000, [
        ['GPU-0', {}, [of(1, ada(1))]],
        ['GPU-1', { processes: null, utilizationRatio: 0.5 }],
      ])
    expect(bench.rows().map(({ user, simulated }) => [user, simulated])).toEqual([
      ['ada', true],
      ['unknown', false],
    ])
  })
})

describe('runs', () => {
  const step = { kind: 'step', run: 'r', rank: 0, custom: null, ...NO_FIGURES } as const
  const end = (parts: object): HubEvent => ({ type: 'run', run: runWith({ pid: 1, startedAt: T, endedAt: T + 6000, ...parts }) })

  function trained(checkpointAfter: number | null): Bench {
    const bench = new Bench(cardWith(0))
    bench.counter.accept({ type: 'run', run: runWith({ pid: 1, startedAt: T }) })
    for (let second = 0; second <= 6; second++) {
      bench.tick(T + second * 1000, [['GPU-0', {}, [of(1, ada(1))]]])
      if (second === checkpointAfter)
        bench.counter.accept({
          type: 'steps',
          provenance: 'live',
          steps: [{ ...step, at: T, step: 1, phaseSeconds: { save: 0.5 } }],
        })
    }
    return bench
  }

  it('loses what was computed since the last checkpoint', () => {
    const bench = trained(4)
    bench.counter.accept(end({ outcome: 'oom' }))
    bench.counter.accept(end({ outcome: 'oom' }))
    expect(bench.rows()).toMatchObject([{ run: 'r', runName: 'r', gpuSeconds: 6, lostOomSeconds: 2, lostDeadSeconds: 0 }])
  })

  it('loses all of a run that died without one, and nothing of one that was stopped or succeeded', () => {
    for (const [parts, lost] of [
      [{ outcome: 'failed' }, 6],
      [{ outcome: 'killed' }, 6],
      [{ outcome: 'killed', ending: { isAsked: true } }, 0],
      [{ outcome: 'success' }, 0],
    ] as const) {
      const bench = trained(null)
      bench.counter.accept(end(parts))
      expect(bench.of('ada', 'lostDeadSeconds')).toBe(lost)
    }
  })

  it('remembers hours that are already closed', () => {
    const bench = trained(null)
    bench.book.takeBefore(T + HOUR_MS)
    bench.counter.accept(end({ outcome: 'failed' }))
    expect(bench.of('ada', 'lostDeadSeconds')).toBe(6)
  })

  it('finds the run of a child process, and of the GPUs that it names', () => {
    const bench = new Bench(cardWith(0), cardWith(1))
    bench.counter.accept({ type: 'run', run: runWith({ id: 'a', pid: 10, startedAt: T }) })
    bench.counter.accept({ type: 'run', run: runWith({ id: 'b', gpus: ['1'], user: 'ada', startedAt: T }) })
    for (const second of [0, 1])
      bench.tick(T + second * 1000, [
        ['GPU-0', {}, [of(11, ada(11, { parentPid: 10 }))]],
        ['GPU-1', {}, [of(12, ada(12)), of(13, infoWith(13, { user: 'ben' }))]],
      ])
    expect(bench.rows().map(({ user, run }) => [user, run])).toEqual([
      ['ada', 'a'],
      ['ada', 'b'],
      ['ben', null],
    ])
  })
})

it('is bounded: jobs beyond the most rows are not told apart, and nothing is lost', () => {
  const bench = new Bench(cardWith(0))
  for (let job = 0; job <= 5000; job++)
    bench.tick(T + job * 100, [['GPU-0', {}, [of(job + 1, infoWith(job + 1, { user: `u${job % 7}`, slurmJob: String(job) }))]]])
  const rows = bench.rows()
  expect(rows.length).toBeLessThanOrEqual(4097)
  expect(rows.reduce((sum, { gpuSeconds }) => sum + gpuSeconds, 0)).toBeCloseTo(500)
})

/** Whatever happens on the cards: users and nobody together have what the devices did. */
describe('the sum over users and nobody', () => {
  const reading = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: null })
  const process = fc.record({
    pid: fc.integer({ min: 1, max: 6 }),
    memory: fc.option(fc.integer({ min: 0, max: 30 }), { nil: null }),
    sm: reading,
    owner: fc.constantFrom('ada', 'ben', null),
    startedAt: fc.constantFrom(T - 5000, T - 90_000),
    type: fc.constantFrom('compute', 'graphics', 'both'),
  })
  const card = fc.record({
    utilization: reading,
    sm: reading,
    power: fc.option(fc.integer({ min: 0, max: 700 }), { nil: null }),
    used: fc.option(fc.integer({ min: 0, max: 80 }), { nil: null }),
    state: fc.constantFrom('ok', 'ok', 'ok', 'lost', 'suspended'),
    processes: fc.option(fc.uniqueArray(process, { maxLength: 4, selector: ({ pid }) => pid }), { nil: null }),
  })
  const moment = fc.record({ stepMs: fc.constantFrom(-3000, 100, 1000, 1000, 9999, 10_001, 4_000_000), cards: fc.tuple(card, card) })

  it('is what the devices did', () => {
    fc.assert(
      fc.property(fc.array(moment, { maxLength: 60 }), (moments) => {
        const bench = new Bench(cardWith(0), cardWith(1))
        const device = { gpuSeconds: 0, busySeconds: 0, smSeconds: 0, energyJoules: 0, memoryByteSeconds: 0 }
        let at = T
        for (const { stepMs, cards } of moments) {
          at += stepMs
          const counts = stepMs > 0 && stepMs <= 10_000 && moments[0]?.cards !== cards
          bench.tick(
            at,
            cards.map((one, index) => {
              const own = one.processes?.map(({ pid, memory, sm, owner, startedAt, type }) =>
                of(pid, owner === null ? null : infoWith(pid, { user: owner, startedAt }), {
                  memoryUsedBytes: memory === null ? null : memory * GIB,
                  smRatio: sm,
                  type: type as GpuProcess['type'],
                }),
              )
              if (counts && one.state !== 'lost') {
                const seconds = stepMs / 1000
                const busy = one.utilization ?? one.sm
                const holders = (own ?? []).filter(({ type, memoryUsedBytes }) => type !== 'graphics' || (memoryUsedBytes ?? 0) >= GIB)
                const known = holders.reduce((sum, { memoryUsedBytes }) => sum + (memoryUsedBytes ?? 0), 0)
                device.gpuSeconds += seconds
                device.busySeconds += (busy ?? 0) * seconds
                device.smSeconds += (one.sm ?? 0) * seconds
                device.energyJoules += (one.power ?? 0) * seconds
                device.memoryByteSeconds += (one.used === null ? known : one.used * GIB) * seconds
              }
              const parts = {
                ...{
                  utilizationRatio: one.utilization,
                  smActiveRatio: one.sm,
                  powerWatts: one.power,
                  state: one.state as GpuSample['state'],
                },
                memoryUsedBytes: one.used === null ? null : one.used * GIB,
                ...(own ? {} : { processes: null }),
              }
              return [`GPU-${index}`, parts, own ?? []] as [string, Partial<GpuSample>, Process[]]
            }),
          )
        }
        const rows = bench.rows()
        for (const [name, truth] of Object.entries(device) as [Sum, number][])
          expect(rows.reduce((sum, row) => sum + row[name], 0) / Math.max(1, truth)).toBeCloseTo(truth / Math.max(1, truth), 6)
        for (const row of rows) {
          expect(row.idleSeconds).toBeLessThanOrEqual(row.gpuSeconds + 1e-6)
          expect(row.gpuSeconds).toBeGreaterThanOrEqual(0)
        }
      }),
      { numRuns: 300 },
    )
  })
})
