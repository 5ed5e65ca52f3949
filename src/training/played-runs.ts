/** The runs of a recording that is played: announced and ended when they were, with the curves so far. In memory only. */
import type { HubEvent, Sink } from '../core/kinds.ts'
import type { Run, TrainingStep } from '../core/model.ts'
import { listedFigures } from './listed-figures.ts'
import { Progress } from './progress.ts'
import type { ListedRun } from './registry.ts'
import { OPEN, publicRun, type RunRecord, UNKNOWN_PARTS } from './run-record.ts'
import { RunTimeline } from './run-timeline.ts'

const MOST_RUNS = 1000

interface Played {
  run: RunRecord
  readonly progress: Progress
  seq: number
  heardAt: number
}

export class PlayedRuns implements Sink {
  readonly name = 'played-runs'
  readonly #announce: (run: Run) => void
  readonly #played = new Map<string, Played>()
  #timeline = new RunTimeline([])

  constructor(announce: (run: Run) => void) {
    this.#announce = announce
  }

  /** Before the first moment. */
  load(records: readonly RunRecord[]): void {
    this.#timeline = new RunTimeline(
      records.map((run) => ({ ...run, provenance: run.provenance === 'simulated' ? 'simulated' : 'replay' })),
    )
  }

  accept(event: HubEvent): void {
    if (event.type === 'tick') this.#show(this.#timeline.moveTo(event.tick.at))
    else if (event.type === 'steps') for (const step of event.steps) this.#take(step)
    else if (event.type === 'playback' && event.playback.state === 'ended') this.#show(this.#timeline.finish())
    else if (event.type === 'restart') {
      this.#played.clear()
      this.#timeline.rewind()
    }
  }

  find(id: string): { run: RunRecord; progress: Progress } | null {
    return this.#played.get(id) ?? null
  }

  /** Whether the recording says more of the run than its steps. */
  isRecorded(id: string): boolean {
    return this.#timeline.has(id)
  }

  /** Most recently heard of first. */
  overview(): readonly ListedRun[] {
    return [...this.#played.values()]
      .sort((a, b) => b.heardAt - a.heardAt)
      .map(({ run, progress, heardAt }) => ({ run, heardAt, figures: listedFigures(progress) }))
  }

  #take(step: TrainingStep): void {
    this.#show(this.#timeline.moveTo(step.at))
    if (!this.#played.has(step.run)) this.#show([unannounced(step)])
    const played = this.#played.get(step.run)
    if (!played) return
    played.heardAt = step.at
    played.progress.accept({ seq: ++played.seq, step, sender: 0, pid: null, localRank: null, worldSize: null, layers: null }, new Set())
  }

  #show(runs: readonly RunRecord[]): void {
    for (const run of runs) {
      const known = this.#played.get(run.id)
      if (known) known.run = run
      else if (this.#played.size < MOST_RUNS)
        this.#played.set(run.id, { run, progress: new Progress(), seq: 0, heardAt: run.endedAt ?? run.startedAt })
      this.#announce(publicRun(run))
    }
  }
}

/** A recording without its runs: only the steps are known. */
function unannounced({ run, at }: TrainingStep): RunRecord {
  const unknown = {
    host: null,
    user: null,
    pid: null,
    command: null,
    gitCommit: null,
    framework: null,
    correlationId: null,
    worldSize: null,
  }
  return {
    ...UNKNOWN_PARTS,
    ...unknown,
    ...OPEN,
    provenance: 'replay',
    id: run,
    name: run,
    gpus: [],
    startedAt: at,
    updatedAt: at,
    report: null,
  }
}
