/** The training room: takes runs and steps from SDKs, keeps them safe, and hands them to the hub. */
import { join } from 'node:path'
import type { Log } from '../kinds.ts'
import type { Provenance, Run, TrainingStep } from '../model.ts'
import type { Route } from '../route.ts'
import { applyBatch, type BatchOutcome } from './batch.ts'
import { Journal, type JournalEntry } from './journal.ts'
import type { Progress } from './progress.ts'
import { recoverSteps } from './recovery.ts'
import { Registry } from './registry.ts'
import { trainingRoutes } from './routes.ts'
import { RunFiles } from './run-files.ts'
import { endRun, mergeRun, newRun, publicRun, type RunEnd, type RunPost, type RunRecord } from './run-record.ts'
import { TRAINING_DEFAULTS, type TrainingValues } from './settings.ts'

/** What of the hub is needed here. */
export interface StepReceiver {
  receiveRun(run: Run): void
  receiveSteps(steps: readonly TrainingStep[], provenance?: Provenance): void
}

export interface TrainingOptions {
  readonly hub: StepReceiver
  /** The log folder; runs are kept in `runs/` below it. null: in memory only. */
  readonly dir: string | null
  readonly log: Log
  readonly now?: () => number
  readonly settings?: TrainingValues
  /** Has what the hub was given been written to the log? Resolves with false while it cannot be. Without it nothing is waited for. */
  readonly flush?: () => Promise<boolean>
}

export interface TrainingHealth {
  readonly runs: number
  readonly activeRuns: number
  readonly forgottenRuns: number
  readonly steps: number
  readonly duplicates: number
  readonly rejected: number
  readonly journalBytes: number
  readonly recoveredSteps: number
  /** Why steps are refused at the moment, or null. */
  readonly reason: string | null
}

export interface Training {
  readonly routes: readonly Route[]
  /** Reads what an earlier process left; to be called when the hub's sinks are in place. Routes wait for it. */
  open(): Promise<void>
  health(): TrainingHealth
  postRun(post: RunPost): Promise<{ run: RunRecord; created: boolean }>
  /** null: no such run. Rejects when the batch cannot be made durable. */
  postSteps(id: string, body: Buffer): Promise<BatchOutcome | null>
  endRun(id: string, end: RunEnd): Promise<RunRecord | null>
  keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean>
  runs(): readonly RunRecord[]
  find(id: string): Promise<{ run: RunRecord; progress: Progress } | null>
  readonly logDir: string | null
  /** Writes down all progress. The store is to be closed after it. */
  close(): Promise<void>
}

/** What may wait for the log: well below its buffer, so that it never has to drop a step. */
const FLUSH_STEPS = 4096
const CHUNK_STEPS = 2048
const JOURNAL_BYTES = 16 * 1024 * 1024

export function createTraining(options: TrainingOptions): Training {
  return new TrainingRoom(options)
}

class TrainingRoom implements Training {
  readonly routes: readonly Route[]
  readonly logDir: string | null
  readonly #options: TrainingOptions
  readonly #now: () => number
  readonly #log: Log
  readonly #registry: Registry
  readonly #journal: Journal
  readonly #outcomes = new WeakMap<JournalEntry, BatchOutcome>()
  readonly #timer: NodeJS.Timeout
  #opened: Promise<void> | null = null
  #checkpointing: Promise<void> | null = null
  #lastChange: Promise<unknown> = Promise.resolve()
  #unflushed = 0
  #steps = 0
  #duplicates = 0
  #rejected = 0
  #recovered = 0
  #reason: string | null = null

  constructor(options: TrainingOptions) {
    const settings = options.settings ?? TRAINING_DEFAULTS
    const runsDir = options.dir === null ? null : join(options.dir, 'runs')
    this.#options = options
    this.logDir = options.dir
    this.#now = options.now ?? Date.now
    this.#log = options.log.child({ room: 'training' })
    this.#registry = new Registry(runsDir === null ? null : new RunFiles(runsDir), settings['training.max_runs'])
    this.#journal = new Journal(runsDir, (entry) => this.#apply(entry))
    this.routes = trainingRoutes(this, this.#now)
    this.#timer = setInterval(() => void this.#checkpoint(), settings['training.checkpoint_seconds'] * 1000)
    this.#timer.unref()
  }

  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      // The next request tries again: a folder that cannot be read now may be there later.
      this.#opened = null
      throw error
    })
    return this.#opened
  }

  health(): TrainingHealth {
    const runs = this.#registry.list()
    return {
      runs: runs.length,
      activeRuns: runs.filter((run) => run.endedAt === null).length,
      forgottenRuns: this.#registry.forgotten,
      steps: this.#steps,
      duplicates: this.#duplicates,
      rejected: this.#rejected,
      journalBytes: this.#journal.bytes,
      recoveredSteps: this.#recovered,
      reason: this.#reason,
    }
  }

  async postRun(post: RunPost): Promise<{ run: RunRecord; created: boolean }> {
    await this.open()
    let created = false
    const run = await this.#change(post.id, (known) => {
      created = known === undefined
      return known ? mergeRun(known, post, this.#now()) : newRun(post, this.#now())
    })
    if (!run) throw new Error(`run ${post.id} was not made`)
    return { run, created }
  }

  async postSteps(id: string, body: Buffer): Promise<BatchOutcome | null> {
    await this.open()
    if (!this.#registry.get(id)) return null
    const entry: JournalEntry = { run: id, receivedAt: this.#now(), body }
    try {
      await this.#journal.append(entry)
    } catch (error) {
      if (this.#reason === null) this.#log.error({ err: error }, 'steps cannot be kept and are refused; those who send them try again')
      this.#reason = (error as Error).message
      throw error
    }
    this.#reason = null
    if (this.#journal.bytes > JOURNAL_BYTES) void this.#checkpoint()
    return this.#outcomes.get(entry) ?? null
  }

  async endRun(id: string, end: RunEnd): Promise<RunRecord | null> {
    await this.open()
    const run = await this.#change(id, (known) => (known ? endRun(known, end, this.#now()) : null))
    // Whoever ends a run looks at its log next.
    if (run && run.endedAt !== null) await this.#options.flush?.()
    return run
  }

  async keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean> {
    await this.open()
    return (await this.#change(id, (known) => (known ? { ...known, report, updatedAt: this.#now() } : null))) !== null
  }

  runs(): readonly RunRecord[] {
    return this.#registry.list()
  }

  async find(id: string): Promise<{ run: RunRecord; progress: Progress } | null> {
    await this.open()
    const run = this.#registry.get(id)
    const progress = await this.#registry.progressOf(id)
    return run && progress ? { run, progress } : null
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    // What could not be read at the start has been logged, and stays as it is for the next start.
    const isOpen = await (this.#opened ?? Promise.reject(new Error('never opened'))).then(
      () => true,
      () => false,
    )
    if (!isOpen) return
    await this.#lastChange
    await this.#checkpointing
    await this.#checkpoint()
    await this.#journal.close()
  }

  /** One change after the other: the ranks of a run report at the same moment. */
  #change(id: string, make: (known: RunRecord | undefined) => RunRecord | null): Promise<RunRecord | null> {
    const turn = this.#lastChange.then(async () => {
      const run = make(this.#registry.get(id))
      if (!run) return null
      await this.#registry.keep(run)
      this.#options.hub.receiveRun(publicRun(run))
      return run
    })
    this.#lastChange = turn.catch(() => undefined)
    return turn
  }

  /** One journaled batch: dedupe, publish. Called in the order of the journal, one at a time. */
  async #apply(entry: JournalEntry): Promise<void> {
    const progress = await this.#registry.progressOf(entry.run)
    // Forgotten between its request and now: the answer is that there is no such run.
    if (!progress) return
    const { steps, outcome } = applyBatch(progress, entry.run, entry.body, entry.receivedAt)
    this.#outcomes.set(entry, outcome)
    this.#steps += outcome.accepted
    this.#duplicates += outcome.duplicates
    this.#rejected += outcome.rejected_count
    if (outcome.accepted > 0) this.#registry.touch(entry.run)
    await this.#publish(steps)
  }

  async #publish(steps: readonly TrainingStep[]): Promise<void> {
    for (let from = 0; from < steps.length; from += CHUNK_STEPS) {
      const chunk = steps.length <= CHUNK_STEPS ? steps : steps.slice(from, from + CHUNK_STEPS)
      this.#options.hub.receiveSteps(chunk)
      this.#unflushed += chunk.length
      if (this.#unflushed < FLUSH_STEPS) continue
      await this.#options.flush?.()
      this.#unflushed = 0
    }
  }

  /** Steps that are in the log for good need not be in the journal. */
  #checkpoint(): Promise<void> {
    this.#checkpointing ??= this.#writeProgress()
      .catch((error: unknown) => this.#log.error({ err: error }, 'the progress of runs could not be written; it is tried again'))
      .finally(() => {
        this.#checkpointing = null
      })
    return this.#checkpointing
  }

  async #writeProgress(): Promise<void> {
    if (!this.#opened) return
    await this.#opened
    let taken: { id: string; text: string }[] = []
    const journals = await this.#journal.rotate(() => {
      taken = this.#registry.takeDirty()
    })
    if (taken.length === 0 && journals.length === 0) return
    try {
      if ((await this.#options.flush?.()) === false) throw new Error('the log of steps cannot be written at the moment')
      await this.#registry.saveProgress(taken)
      await this.#journal.discard(journals)
    } catch (error) {
      this.#registry.markDirty(taken.map(({ id }) => id))
      throw error
    }
  }

  async #open(): Promise<void> {
    for (const fault of await this.#registry.load()) this.#log.warn({}, fault)
    const { dir, hub } = this.#options
    if (dir === null) return
    for (const run of this.#registry.list()) if (run.endedAt === null) hub.receiveRun(publicRun(run))
    const left = await recoverSteps(dir, this.#registry)
    if (left === null) return
    this.#recovered = left.missing.length
    await this.#publish(left.missing)
    // They go with the next checkpoint, when the log is known to hold these steps.
    this.#journal.adopt(left.paths)
    this.#log.info({ steps: left.steps, missing: left.missing.length }, 'took over steps that an earlier process had received')
  }
}
