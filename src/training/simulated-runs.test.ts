import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { HubEvent, Log } from '../core/kinds.ts'
import { cardWith } from '../core/model.fixture.ts'
import type { Run, TrainingStep } from '../core/model.ts'
import { NO_STEP } from '../core/record.ts'
import { createTraining, type Training } from './training.ts'

const ignore = () => undefined
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }
const START = Date.now() - 60_000
const rooms: Training[] = []

afterEach(async () => {
  for (const room of rooms.splice(0)) await room.close()
})

function world(dir: string) {
  const published: Run[] = []
  const hub = { receiveRun: (run: Run) => void published.push(run), receiveSteps: () => expect.fail('published twice') }
  const training = createTraining({ hub, dir, log: SILENT })
  rooms.push(training)
  return { training, published }
}

const RUN: Run = {
  ...{ id: 's1', name: 'llama', provenance: 'simulated', host: 'simulated', user: 'alice', pid: 4_194_305, gpus: ['GPU-SIM-0000'] },
  ...{ worldSize: 1, totalSteps: 100, startedAt: START, endedAt: null, outcome: null, ending: null },
}
const ENDING = { message: 'CUDA out of memory', cause: 'a leak', place: 'train.py:77', isAsked: false, isPresumed: false }
const told = (run: Run, report: Record<string, unknown> | null = null): HubEvent => ({
  type: 'run',
  run,
  about: { command: 'python train.py', framework: 'pytorch', report },
})
const steps = (from: number, to: number, run = RUN.id): HubEvent => {
  const of = (step: number): TrainingStep => ({ ...NO_STEP, kind: 'step', run, rank: 0, step, at: START + step * 100, loss: 10 / step })
  return { type: 'steps', steps: Array.from({ length: to - from + 1 }, (_, index) => of(from + index)), provenance: 'simulated' }
}
const folder = () => mkdtempSync(join(tmpdir(), 'gpuwarden-simulated-'))

describe('a simulated run', () => {
  it('is over when real GPUs take the place of the simulated ones, neither succeeded nor failed', async () => {
    const { training, published } = world(folder())
    await training.open()
    const devices = (provenance: 'simulated' | 'live'): HubEvent => ({ type: 'devices', devices: [cardWith(0, { provenance })] })
    for (const event of [devices('simulated'), told(RUN), steps(1, 5), devices('simulated')]) training.accept(event)
    await vi.waitFor(async () => expect((await training.find('s1'))?.progress.figures().steps).toBe(5))
    expect((await training.find('s1'))?.run.endedAt).toBe(null)
    training.accept(devices('live'))
    await vi.waitFor(async () => expect((await training.find('s1'))?.run.endedAt).toBeGreaterThan(0))
    expect(published).toMatchObject([{ id: 's1', outcome: null, provenance: 'simulated', endedAt: expect.any(Number) }])
    training.accept(devices('live'))
    training.accept(steps(6, 7))
    await training.close()
    expect(published).toHaveLength(1)
  })

  it('has a curve, an end and a report, and stays in the list', async () => {
    const { training, published } = world(folder())
    await training.open()
    for (const event of [
      told(RUN),
      steps(20, 40),
      told({ ...RUN, endedAt: START + 5000, outcome: 'oom', ending: ENDING }, { kind: 'oom' }),
    ])
      training.accept(event)
    await vi.waitFor(async () => expect((await training.find('s1'))?.run.outcome).toBe('oom'))
    const found = await training.find('s1')
    expect(found?.run).toMatchObject({ provenance: 'simulated', framework: 'pytorch', message: ENDING.message, report: { kind: 'oom' } })
    expect(found?.progress.figures()).toMatchObject({ steps: 21, lastStep: 40, loss: 0.25 })
    expect(found?.progress.curves.of(0)?.columns(['loss'], 0, 100)[0]).toHaveLength(21)
    expect(training.runs().map(({ run }) => run.id)).toEqual(['s1'])
    expect(published).toEqual([])
  })

  it('whose simulation was stopped has neither succeeded nor failed, and its steps in a recording do not count again', async () => {
    const dir = folder()
    const first = world(dir)
    await first.training.open()
    for (const event of [told(RUN), steps(1, 10)]) first.training.accept(event)
    await vi.waitFor(async () => expect((await first.training.find('s1'))?.progress.figures().steps).toBe(10))
    await first.training.close()
    const { training, published } = world(dir)
    await training.open()
    expect(published).toMatchObject([{ id: 's1', provenance: 'simulated', outcome: null, endedAt: expect.any(Number) }])
    training.accept(steps(11, 20))
    training.accept(told({ ...RUN, id: 's2' }))
    await vi.waitFor(() => expect(training.runs().map(({ run }) => run.id)).toEqual(['s2', 's1']))
    expect((await training.find('s1'))?.progress.figures().steps).toBe(10)
    expect((await training.find('s1'))?.run).toMatchObject({ outcome: null, message: 'the simulation was stopped' })
  })

  it('is told from a real one', async () => {
    const { training } = world(folder())
    await training.open()
    const { about, ...real } = told(RUN) as Extract<HubEvent, { type: 'run' }>
    training.accept(real)
    training.accept({ ...(steps(1, 2) as Extract<HubEvent, { type: 'steps' }>), provenance: 'live' })
    await training.checkpoint()
    expect(training.runs()).toEqual([])
    expect(about?.framework).toBe('pytorch')
  })
})
