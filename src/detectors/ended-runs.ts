/** Runs that have ended: their late steps are ignored, unless they are newer than the end (the run was resumed). */
import { BoundedMap } from '../core/bounded-map.ts'
import { MOST_RUNS } from '../core/detector-contract.ts'
import type { Run, TrainingStep } from '../core/model.ts'

export class EndedRuns {
  readonly #endedAt: BoundedMap<string, number>

  constructor(cap = MOST_RUNS) {
    this.#endedAt = new BoundedMap(cap)
  }

  note(run: Run): void {
    if (run.endedAt === null) this.#endedAt.delete(run.id)
    else this.#endedAt.set(run.id, run.endedAt)
  }

  isPast(step: TrainingStep): boolean {
    const endedAt = this.#endedAt.size === 0 ? undefined : this.#endedAt.get(step.run)
    return endedAt !== undefined && step.at <= endedAt
  }

  snapshot(): unknown {
    return this.#endedAt.saved()
  }

  restore(state: unknown): void {
    this.#endedAt.load(state)
  }
}
