/** Many runs at once: every one that is alive is followed, and none is resolved because others came. */
import { describe, expect, it } from 'vitest'
import type { HubEvent } from '../core/kinds.ts'
import type { Finding, TrainingStep } from '../core/model.ts'
import { createEngine, type Engine } from './engine.ts'
import { detectors } from './index.ts'
import { device, GIB, gpu, run, START, step } from './inputs.fixture.ts'

const SECOND = 1000

function engineFor(maxRuns?: number): Engine {
  const engine = createEngine({ kinds: detectors, hostname: 'box', ...(maxRuns === undefined ? {} : { maxRuns }) })
  const one = device()
  if (one.type === 'device') engine.accept({ type: 'devices', devices: [one.device] })
  return engine
}

function stepOf(id: string, at: number, number: number, overrides: Partial<TrainingStep> = {}): TrainingStep {
  const made = step(at, number, { run: id, ...overrides })
  if (made.type !== 'step') throw new Error('expected a step')
  return made.step
}

function started(id: string): HubEvent {
  const made = run({ id, name: id, gpus: [] })
  if (made.type !== 'run') throw new Error('expected a run')
  return { type: 'run', run: made.run }
}

function ended(id: string, at: number): HubEvent {
  const made = run({ id, name: id, endedAt: at, outcome: 'success' })
  if (made.type !== 'run') throw new Error('expected a run')
  return { type: 'run', run: made.run }
}

function tick(at: number): HubEvent {
  const made = gpu(at)
  if (made.type !== 'gpu') throw new Error('expected a sample')
  return {
    type: 'tick',
    tick: {
      seq: 1,
      at,
      source: 'nvidia',
      provenance: 'live',
      gpus: [made.sample],
      processes: made.processes,
      host: null,
      events: [],
    },
  }
}

/** One step a second of every run; `change` makes some of them different, null leaves one out. */
function play(
  engine: Engine,
  ids: readonly string[],
  seconds: readonly [from: number, to: number],
  change: (id: string, second: number) => Partial<TrainingStep> | null = () => ({}),
): Finding[] {
  const found: Finding[] = []
  for (let second = seconds[0]; second < seconds[1]; second++) {
    const at = START + second * SECOND
    const steps = ids.flatMap((id) => {
      const overrides = change(id, second)
      return overrides === null ? [] : [stepOf(id, at, second, { stepSeconds: 1, ...overrides })]
    })
    found.push(...engine.accept({ type: 'steps', steps, provenance: 'live' }), ...engine.accept(tick(at + 1)))
  }
  return found
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `run-${index}`)

describe('more runs than a handful', () => {
  it.each([33, 256])('finds NaN, a stall and a leak in the first of %d runs, and keeps them while the others go on', (count) => {
    const engine = engineFor()
    const ids = names(count)
    for (const id of ids) engine.accept(started(id))
    const found = play(engine, ids, [0, 200], (id, second) => {
      if (id === 'run-0' && second > 60) return { loss: Number.NaN }
      if (id === 'run-1' && second > 60) return null
      if (id === 'run-2') return { memoryAllocatedBytes: 5 * GIB + second * 0.15 * GIB }
      return {}
    })
    const resolved = found.filter(({ state, detector }) => state === 'resolved' && detector !== 'change')
    expect(resolved.map(({ message }) => message)).toEqual([])
    const active = engine.findings().map(({ detector, subject }) => `${detector} ${subject.run}`)
    expect(active).toEqual(expect.arrayContaining(['loss_nan run-0', 'stall run-1', 'leak run-2']))
    expect(engine.unfollowed()).toEqual({ runs: [], byDetector: expect.objectContaining({ loss_nan: 0, stall: 0, leak: 0, oom: 0 }) })
  })

  it('keeps more findings than runs of one kind used to be allowed: NaN in 256 runs is 256 findings', () => {
    const engine = engineFor()
    const found = play(engine, names(256), [0, 5], (_id, second) => (second > 2 ? { loss: Number.NaN } : {}))
    expect(found.filter(({ state }) => state === 'resolved')).toEqual([])
    expect(engine.findings().filter(({ detector }) => detector === 'loss_nan')).toHaveLength(256)
  })

  it('lets the run go that was silent longest, and never one with an open finding while another will do', () => {
    const engine = engineFor(4)
    play(engine, ['bad', 'old', 'a', 'b'], [0, 10], (id) => (id === 'bad' ? { loss: Number.NaN } : {}))
    play(engine, ['a', 'b'], [10, 100])
    const found = play(engine, ['a', 'b', 'new'], [100, 110], (id, second) => (id === 'new' && second > 105 ? { loss: Number.NaN } : {}))
    expect(found.filter(({ state, detector }) => state === 'resolved' && detector === 'loss_nan')).toEqual([])
    expect(
      engine
        .findings()
        .filter(({ detector }) => detector === 'loss_nan')
        .map(({ subject }) => subject.run),
    ).toEqual(['bad', 'new'])
  })

  it('says which run finds no room while all others report, and follows it once one has ended', () => {
    const engine = engineFor(2)
    play(engine, ['a', 'b', 'c'], [0, 10], (id, second) => (id === 'a' && second > 5 ? { loss: Number.NaN } : {}))
    expect(engine.unfollowed().runs).toEqual(['c'])
    expect(engine.unfollowed().byDetector).toMatchObject({ loss_nan: 1, stall: 1, leak: 0 })
    expect(engine.findings().map(({ subject }) => subject.run)).toContain('a')
    engine.accept(ended('b', START + 10 * SECOND))
    play(engine, ['a', 'c'], [11, 20], (id) => ({ loss: id === 'c' ? Number.NaN : 1 }))
    expect(engine.unfollowed().runs).toEqual([])
    expect(engine.findings().map(({ detector, subject }) => `${detector} ${subject.run}`)).toContain('loss_nan c')
  })

  it('keeps the finding of a run that made room until the run itself is over or well again', () => {
    const engine = engineFor(1)
    play(engine, ['a'], [0, 5], () => ({ loss: Number.NaN }))
    play(engine, ['b'], [100, 105])
    const isOpen = () => engine.findings().some(({ detector, subject }) => detector === 'loss_nan' && subject.run === 'a')
    expect(isOpen()).toBe(true)
    expect(engine.unfollowed().runs).toEqual(['a'])
    play(engine, ['a'], [300, 400])
    expect(isOpen()).toBe(false)
    play(engine, ['a'], [400, 405], () => ({ loss: Number.NaN }))
    play(engine, ['b'], [500, 505])
    engine.accept(ended('a', START + 506 * SECOND))
    expect(isOpen()).toBe(false)
    expect(engine.unfollowed().runs).toEqual([])
  })
})
