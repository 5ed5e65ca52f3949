/** The runs of a simulation, kept like any other. The hub has published them and their steps already, and nobody waits for an answer. */
import type { HubEvent } from '../core/kinds.ts'
import type { Run, RunAbout, TrainingStep } from '../core/model.ts'
import type { Registry } from './registry.ts'
import { type RunRecord, UNKNOWN_PARTS } from './run-record.ts'

export class SimulatedRuns {
  readonly #registry: Registry
  readonly #now: () => number
  readonly #publish: (run: RunRecord) => void
  /** Those that run now: a recording may hold steps of others. */
  readonly #running = new Set<string>()

  /** `publish`: for those that end here and not in the simulation. */
  constructor(registry: Registry, now: () => number, publish: (run: RunRecord) => void) {
    this.#registry = registry
    this.#now = now
    this.#publish = publish
  }

  /** What is to be done with it; null: it is not of a simulation. */
  take(event: HubEvent): (() => Promise<void>) | null {
    if (event.type === 'run' && event.about) {
      const { run, about } = event
      return () => this.#keepRun(run, about)
    }
    // Real GPUs have taken the place of the simulated ones.
    if (event.type === 'devices' && this.#running.size > 0 && event.devices.every(({ provenance }) => provenance !== 'simulated'))
      return () => this.#endRunning()
    return event.type === 'steps' && event.provenance === 'simulated' ? () => this.#keepSteps(event.steps) : null
  }

  /** Runs that have not ended. The simulation that made some of them was stopped: these neither succeeded nor failed. */
  async leftOpen(): Promise<readonly RunRecord[]> {
    const left: RunRecord[] = []
    for (const run of this.#registry.list().filter(({ endedAt }) => endedAt === null)) {
      left.push(run.provenance === 'simulated' ? await this.#end(run) : run)
    }
    return left
  }

  async #endRunning(): Promise<void> {
    const running = [...this.#running].flatMap((id) => this.#registry.get(id) ?? [])
    this.#running.clear()
    for (const run of running) this.#publish(await this.#end(run))
  }

  async #end(run: RunRecord): Promise<RunRecord> {
    const endedAt = Math.max(run.startedAt, this.#registry.heardAt(run.id))
    const ended = { ...run, endedAt, message: 'the simulation was stopped' }
    await this.#registry.keep(ended)
    return ended
  }

  #keepRun({ ending, ...run }: Run, about: RunAbout): Promise<void> {
    if (run.endedAt === null) this.#running.add(run.id)
    else this.#running.delete(run.id)
    const unknown = { ...UNKNOWN_PARTS, gitCommit: null, correlationId: null, canRecord: false, canTellStacks: false }
    return this.#registry.keep({
      ...unknown,
      ...run,
      ...about,
      model: run.model ?? null,
      places: run.places ?? [],
      message: ending?.message ?? null,
      updatedAt: this.#now(),
    })
  }

  async #keepSteps(steps: readonly TrainingStep[]): Promise<void> {
    const ignored = new Set<string>()
    for (const step of steps) {
      const progress = this.#running.has(step.run) ? await this.#registry.progressOf(step.run) : null
      if (!progress) continue
      progress.accept({ seq: step.step, sender: 0, step, pid: null, localRank: step.rank, worldSize: null, layers: null }, ignored)
      this.#registry.touch(step.run, progress, this.#now())
    }
  }
}
