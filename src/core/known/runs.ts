/** Training runs with the latest step of each of their ranks. */
import type { Run, TrainingStep } from '../model.ts'
import { nameWithId } from '../run-names.ts'

export interface KnownRun {
  readonly id: string
  /** null: only its steps are known (recording). */
  readonly run: Run | null
  /** By rank. */
  readonly steps: ReadonlyMap<number, TrainingStep>
  /** Of the lowest rank; null before the first. */
  readonly step: TrainingStep | null
}

/** The most that an agent can be configured to keep. */
const MOST_RUNS = 10_000
/** An unannounced run without a step for this long counts as ended. */
const FORGET_MS = 2 * 60_000

export function runName({ id, run }: Pick<KnownRun, 'id' | 'run'>): string {
  return run?.name ?? id
}

export function isRunning({ run, step }: KnownRun, present: number): boolean {
  return run ? run.endedAt === null : step !== null && present - step.at <= FORGET_MS
}

/** Names for a list: with the id where two of them share a name. */
export function namesIn(runs: readonly KnownRun[]): (run: KnownRun) => string {
  const counts = new Map<string, number>()
  for (const run of runs) counts.set(runName(run), (counts.get(runName(run)) ?? 0) + 1)
  return (run) => ((counts.get(runName(run)) ?? 0) > 1 ? nameWithId(runName(run), run.id) : runName(run))
}

/** By name, so that rows keep their place. */
export function compareRuns(a: KnownRun, b: KnownRun): number {
  return runName(a).localeCompare(runName(b), 'en', { numeric: true }) || (a.id < b.id ? -1 : 1)
}

interface Entry extends KnownRun {
  run: Run | null
  readonly steps: Map<number, TrainingStep>
  step: TrainingStep | null
}

export class KnownRuns {
  readonly #runs = new Map<string, Entry>()
  #announced: ReadonlyMap<string, Run> | null = null
  #latest: ReadonlyMap<string, TrainingStep> | null = null

  /** The same map until a run changes. */
  get announced(): ReadonlyMap<string, Run> {
    this.#announced ??= new Map([...this.#runs.values()].flatMap(({ id, run }) => (run ? [[id, run] as const] : [])))
    return this.#announced
  }

  /** Of the lowest rank; the same map until there is another step. */
  get latest(): ReadonlyMap<string, TrainingStep> {
    this.#latest ??= new Map([...this.#runs.values()].flatMap(({ id, step }) => (step ? [[id, step] as const] : [])))
    return this.#latest
  }

  values(): IterableIterator<KnownRun> {
    return this.#runs.values()
  }

  get(id: string): KnownRun | undefined {
    return this.#runs.get(id)
  }

  acceptRun(run: Run): void {
    this.#of(run.id).run = run
    this.#announced = null
  }

  acceptSteps(steps: readonly TrainingStep[]): void {
    this.#latest = null
    for (const step of steps) {
      const entry = this.#of(step.run)
      entry.steps.set(step.rank, step)
      if (entry.step === null || step.rank <= entry.step.rank) entry.step = step
    }
  }

  /** Steps stay: a picture has none. */
  begin(runs: readonly Run[]): void {
    const told = new Set(runs.map(({ id }) => id))
    for (const [id, { run }] of this.#runs) if (run && !told.has(id)) this.#forget(id)
    for (const run of runs) this.acceptRun(run)
  }

  clear(): void {
    this.#runs.clear()
    this.#announced = null
    this.#latest = null
  }

  #of(id: string): Entry {
    let entry = this.#runs.get(id)
    if (!entry) {
      const [oldest] = this.#runs.size < MOST_RUNS ? [] : this.#runs.keys()
      if (oldest !== undefined) this.#forget(oldest)
      entry = { id, run: null, steps: new Map(), step: null }
      this.#runs.set(id, entry)
    }
    return entry
  }

  #forget(id: string): void {
    this.#runs.delete(id)
    this.#announced = null
    this.#latest = null
  }
}
