import { describe, expect, it } from 'vitest'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { Run, TrainingStep } from '../core/model.ts'
import { NO_FIGURES } from '../core/record.ts'
import { PlayedRuns } from './played-runs.ts'
import { OPEN, type RunRecord, UNKNOWN_PARTS } from './run-record.ts'

const NO_FACTS = {
  host: null,
  user: null,
  pid: null,
  command: null,
  gitCommit: null,
  framework: null,
  correlationId: null,
  worldSize: null,
}

function record(parts: Partial<RunRecord>): RunRecord {
  return {
    ...UNKNOWN_PARTS,
    ...NO_FACTS,
    ...OPEN,
    id: 'a',
    name: 'llama',
    gpus: [],
    startedAt: 1000,
    updatedAt: 1000,
    report: null,
    ...parts,
  }
}

const died = record({ endedAt: 5000, outcome: 'oom', message: 'CUDA out of memory', report: { kind: 'oom' } })

const tick = (at: number): HubEvent => ({
  type: 'tick',
  tick: { seq: 1, at, source: 'replay', provenance: 'replay', gpus: [], processes: [], host: null, events: [] } satisfies Tick,
})

function steps(at: number, run: string, step: number): HubEvent {
  const one: TrainingStep = { kind: 'step', at, run, rank: 0, step, ...NO_FIGURES, loss: 2, phaseSeconds: null, custom: null }
  return { type: 'steps', steps: [one], provenance: 'replay' }
}

function play(...records: RunRecord[]) {
  const said: Run[] = []
  const played = new PlayedRuns((run) => said.push(run))
  played.load(records)
  return { played, said, ids: () => said.map(({ id, outcome }) => `${id} ${outcome}`) }
}

describe('PlayedRuns', () => {
  it('knows of a run, its ending and its report only from the moment that they were', () => {
    const { played, said } = play(died)
    played.accept(tick(500))
    expect(said).toEqual([])
    played.accept(tick(1000))
    expect(said.at(-1)).toMatchObject({ id: 'a', name: 'llama', endedAt: null, outcome: null, ending: null })
    expect(played.find('a')?.run).toMatchObject({ endedAt: null, message: null, report: null })
    played.accept(tick(5000))
    expect(said.at(-1)).toMatchObject({ endedAt: 5000, outcome: 'oom' })
    expect(played.find('a')?.run).toMatchObject({ message: 'CUDA out of memory', report: { kind: 'oom' } })
    expect(said.length).toBe(2)
  })

  it('shows an ending that came just after the last sample, and none that came long after', () => {
    const { played, ids } = play(died, record({ id: 'b', endedAt: 900_000, outcome: 'success' }))
    played.accept(tick(4900))
    played.accept({ type: 'playback', playback: { state: 'ended', at: 4900, speed: 1, jumps: 0 } })
    expect(ids()).toEqual(['a null', 'b null', 'a oom'])
  })

  it('leaves out runs that were over before the recording begins', () => {
    const { played, ids } = play(record({ id: 'old', startedAt: 0, endedAt: 10, outcome: 'success' }), record({ id: 'long', startedAt: 0 }))
    played.accept(tick(2000))
    expect(ids()).toEqual(['long null'])
  })

  it('forgets everything when the recording starts over', () => {
    const { played, ids } = play(died)
    played.accept(tick(1000))
    played.accept(steps(1500, 'a', 7))
    played.accept(tick(6000))
    played.accept({ type: 'restart' })
    expect(played.overview()).toEqual([])
    played.accept(tick(1000))
    expect(ids()).toEqual(['a null', 'a oom', 'a null'])
    expect(played.find('a')?.progress.figures().steps).toBe(0)
  })

  it('keeps curves, also of a run that only its steps are known of', () => {
    const { played, said } = play()
    played.accept(steps(1500, 'unnamed', 1))
    played.accept(steps(1600, 'unnamed', 2))
    expect(said).toEqual([expect.objectContaining({ id: 'unnamed', name: 'unnamed', startedAt: 1500, endedAt: null })])
    expect(played.find('unnamed')?.progress.figures()).toMatchObject({ steps: 2, lastStep: 2, loss: 2 })
    expect(played.overview()).toEqual([expect.objectContaining({ heardAt: 1600, figures: expect.objectContaining({ steps: 2 }) })])
    expect(played.isRecorded('unnamed')).toBe(false)
  })
})
