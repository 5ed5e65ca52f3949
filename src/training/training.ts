/** The training room: takes runs and steps from SDKs, stores them safely, and passes them to the hub. */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DiskStuck, logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import type { HubEvent, Log } from '../core/kinds.ts'
import type { TrainingStep } from '../core/model.ts'
import type { Route } from '../core/route.ts'
import { MISTRUST_MS } from '../core/wall-clock.ts'
import { applyBatch, type BatchOutcome } from './batch.ts'
import { Checkpoints } from './checkpoints.ts'
import { Journal, type JournalEntry } from './journal.ts'
import { PlayedRuns } from './played-runs.ts'
import type { Progress } from './progress.ts'
import { recordingRoutes } from './recording-routes.ts'
import { Recordings } from './recordings.ts'
import { recoverSteps } from './recovery.ts'
import { type ListedRun, Registry } from './registry.ts'
import { type ReportKind, ReportMaker, type ReportOutcome } from './report-process.ts'
import { reportRoutes } from './report-routes.ts'
import { trainingRoutes } from './routes.ts'
import { RunFiles, recordedRuns } from './run-files.ts'
import { endRun, endsInNan, mergeRun, newRun, publicRun, type RunEnd, type RunPost, type RunRecord, reopened } from './run-record.ts'
import { TRAINING_DEFAULTS } from './settings.ts'
import { closeRuns, presumedEnd, seenProcess } from './silent-runs.ts'
import { SimulatedRuns } from './simulated-runs.ts'
import type { ReceivedStep } from './step-line.ts'
import type { Training, TrainingHealth, TrainingOptions } from './training-contract.ts'
import { UnstoredSteps } from './unstored-steps.ts'

/** What may wait for the log: well below its buffer, so that it never drops a step. */
const FLUSH_STEPS = 4096
const CHUNK_STEPS = 2048
const JOURNAL_BYTES = 16 * 1024 * 1024
const LOOK_FOR_SILENT_MS = 15_000

export type { StepReceiver, Training, TrainingHealth, TrainingOptions } from './training-contract.ts'

export function createTraining(options: TrainingOptions): Training {
  return new TrainingRoom(options)
}

class TrainingRoom implements Training {
  readonly routes: readonly Route[]
  readonly logDir: string | null
  readonly recordings: Recordings
  readonly recordOf = (id: string): RunRecord | null => this.#registry.get(id) ?? null
  /** null: nothing is kept. */
  readonly #dir: string | null
  readonly #options: TrainingOptions
  readonly #now: () => number
  readonly #log: Log
  readonly #registry: Registry
  readonly #simulated: SimulatedRuns
  readonly #journal: Journal
  readonly #checkpoints: Checkpoints
  readonly #unstored = new UnstoredSteps()
  readonly #outcomes = new WeakMap<JournalEntry, BatchOutcome>()
  readonly #reports: ReportMaker | null
  readonly played: PlayedRuns | null
  readonly #timers: readonly NodeJS.Timeout[]
  readonly #staleMs: number | null
  readonly #since: number
  #opened: Promise<void> | null = null
  #lastChange: Promise<unknown> = Promise.resolve()
  #isClosingSilent = false
  #unflushed = 0
  readonly #counts = { steps: 0, duplicates: 0, rejected: 0, recoveredSteps: 0 }
  #reason: string | null = null

  constructor(options: TrainingOptions) {
    const settings = options.settings ?? TRAINING_DEFAULTS
    const runsDir = options.dir === null ? null : join(options.dir, 'runs')
    this.#options = options
    this.#dir = options.dir
    this.#now = options.now ?? Date.now
    this.#since = this.#now()
    this.#staleMs = settings['training.stale_hours'] === 0 ? null : settings['training.stale_hours'] * 3_600_000
    this.#log = options.log.child({ room: 'training' })
    this.#registry = new Registry(runsDir === null ? null : new RunFiles(runsDir), settings['training.max_runs'])
    this.#simulated = new SimulatedRuns(this.#registry, this.#now)
    this.#journal = new Journal(
      runsDir,
      (entry) => this.#apply(entry),
      (path) => this.#journalRemoved(path),
      options.lookEveryMs,
    )
    this.#checkpoints = new Checkpoints({
      ...{ logDir: this.#dir, log: this.#log, journal: this.#journal, registry: this.#registry },
      opened: () => this.#opened,
      flush: () => this.flush(),
    })
    this.recordings = new Recordings({
      ...{ asksByItself: settings['training.record_leaks'], now: this.#now, log: this.#log },
      run: (id) => this.#registry.get(id),
      change: (id, make) => this.#change(id, make),
    })
    const { report, recording, hub } = options
    const reported = recording ?? this.#dir
    this.logDir = reported
    this.#reports = report && reported !== null ? new ReportMaker(report, reported) : null
    this.played = recording === undefined ? null : new PlayedRuns((run) => hub.receiveRun(run))
    this.routes = [...trainingRoutes(this, this.#now), ...recordingRoutes(this, this.#now), ...reportRoutes(this)]
    this.#timers = [
      setInterval(() => void this.checkpoint(), settings['training.checkpoint_seconds'] * 1000).unref(),
      setInterval(() => void this.closeSilentRuns().catch(this.#couldNotKeep), LOOK_FOR_SILENT_MS).unref(),
    ]
  }

  open(): Promise<void> {
    return this.#patiently(() => this.#openOnce())
  }

  #openOnce(): Promise<void> {
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
      ...this.#counts,
      journalBytes: this.#journal.bytes,
      reason: this.#reason ?? (this.#dir === null ? null : (logLane.stuck()?.message ?? null)),
    }
  }

  async postRun(post: RunPost): Promise<{ run: RunRecord; created: boolean }> {
    await this.open()
    let created = false
    let known: RunRecord | undefined
    let merged: RunRecord | undefined
    const run = await this.#change(post.id, (before) => {
      known = before
      created = before === undefined
      const process = seenProcess(post)
      merged = before ? mergeRun(before, post, this.#now(), process) : newRun(post, this.#now(), process)
      return merged
    }).catch((error: unknown) => {
      // Announced again with nothing new: all of it is stored, whatever the disk says now.
      if (known && merged && isDeepStrictEqual({ ...merged, updatedAt: known.updatedAt }, known)) return known
      throw error
    })
    if (!run) throw new Error(`run ${post.id} was not made`)
    return { run, created }
  }

  async postSteps(id: string, body: Buffer): Promise<BatchOutcome | null> {
    await this.open()
    if (!this.#registry.get(id)) return null
    const entry: JournalEntry = { run: id, receivedAt: this.#now(), body }
    try {
      await this.#patiently(() => this.#journal.append(entry))
    } catch (error) {
      this.#journal.withdraw(entry)
      await this.#judgeUnstored(entry)
      if (this.#reason === null) this.#log.error({ err: error }, 'steps cannot be written and are refused; the senders will try again')
      this.#reason = (error as Error).message
      throw error
    }
    this.#reason = null
    if (this.#journal.bytes > JOURNAL_BYTES) void this.checkpoint()
    return this.#outcomes.get(entry) ?? null
  }

  /** A disk that is full must not hide a NaN: the alert need not wait until the step can be stored. */
  async #judgeUnstored({ run, body, receivedAt }: JournalEntry): Promise<void> {
    const { judge } = this.#options
    if (!judge) return
    const progress = await this.#registry.progressOf(run).catch(() => null)
    const steps = this.#unstored.take(run, body, receivedAt, (received) => progress?.has(received) ?? false)
    if (steps.length > 0) judge.judge(steps)
  }

  async endRun(id: string, told: RunEnd): Promise<RunRecord | null> {
    await this.open()
    const isOfAll = told.outcome === 'success' && (told.rank === null || told.rank === 0)
    const progress = isOfAll ? await this.#patiently(() => this.#registry.progressOf(id)) : null
    // A program that trained with NaN to its last step ended without an error, but did not succeed.
    const end: RunEnd = progress && endsInNan(progress.figures()) ? { ...told, outcome: 'nan' } : told
    const run = await this.#change(id, (known) => (known ? endRun(known, end, this.#now()) : null))
    if (run && run.endedAt !== null) this.recordings.drop(id)
    // Whoever ends a run looks at its log next.
    if (run && run.endedAt !== null) {
      this.#unstored.forget(id)
      await this.#options.flush?.()
    }
    return run
  }

  async keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean> {
    await this.open()
    return (await this.#change(id, (known) => (known ? { ...known, report, updatedAt: this.#now() } : null))) !== null
  }

  accept(event: HubEvent): void {
    // A recording has its own runs.
    const work = this.played ? null : this.#simulated.take(event)
    if (work) this.#lastChange = Promise.all([this.#lastChange, this.#openOnce()]).then(work).catch(this.#couldNotKeep)
  }

  runs(): readonly ListedRun[] {
    return [...(this.played?.overview() ?? []), ...this.#registry.overview()]
  }

  async closeSilentRuns(): Promise<number> {
    // Until the runs are read from disk there is nothing to close; the next request retries a failed read.
    if (!this.#opened || this.#isClosingSilent) return 0
    this.#isClosingSilent = true
    try {
      await this.#opened
      // After a jump of the clock, the age of a silence is not known.
      const staleMs = (this.#options.sinceJumpMs?.() ?? MISTRUST_MS) < MISTRUST_MS ? null : this.#staleMs
      return await closeRuns({
        runs: this.#registry.list(),
        endOf: (run) => presumedEnd(run, this.#registry.heardAt(run.id), this.#since, this.#now(), staleMs),
        change: (id, make) => this.#change(id, make),
      })
    } finally {
      this.#isClosingSilent = false
    }
  }

  async flush(): Promise<boolean> {
    return (await this.#options.flush?.()) ?? true
  }

  async find(id: string): Promise<{ run: RunRecord; progress: Progress } | null> {
    await this.open()
    const played = this.played?.find(id)
    if (played) return played
    const run = this.#registry.get(id)
    const progress = await this.#patiently(() => this.#registry.progressOf(id))
    return run && progress ? { run, progress } : null
  }

  tellEnds(ids: Iterable<string>): void {
    for (const id of new Set(ids)) {
      const run = this.#registry.get(id)
      if (run && run.endedAt !== null) this.#options.hub.receiveRun(publicRun(run))
    }
  }

  async report(id: string, kind: ReportKind): Promise<ReportOutcome | null> {
    // Only the steps of an unannounced run are recorded: its report is that of the whole recording.
    const isRecorded = this.played?.isRecorded(id) ?? true
    return this.#reports?.make(isRecorded ? id : null, kind) ?? null
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#reports?.close()
    try {
      await logLane.patiently(() => this.#finish(), STUCK_AT_END_MS)
    } catch (error) {
      if (!(error instanceof DiskStuck)) throw error
      this.#log.error({ err: error }, 'the progress of runs could not be written; acknowledged steps are in the journal')
    }
  }

  async #finish(): Promise<void> {
    // What could not be read at the start was logged, and stays for the next start.
    const isOpen = await this.#opened?.then(() => true).catch(() => false)
    if (!isOpen) return
    await this.#lastChange
    await this.#checkpoints.writeLast()
    await this.#journal.close()
  }

  /** Rejects with DiskStuck while the disk does not answer; the work continues when it does. */
  #patiently<T>(work: () => Promise<T>): Promise<T> {
    return this.#dir === null ? work() : logLane.patiently(work)
  }

  /** One change at a time: the ranks of a run report at the same moment. */
  #change(id: string, make: (known: RunRecord | undefined) => RunRecord | null): Promise<RunRecord | null> {
    let isGivenUp = false
    const turn = this.#lastChange.then(async () => {
      // The sender was refused, and will ask again.
      const run = isGivenUp ? null : make(this.#registry.get(id))
      if (!run) return null
      await this.#registry.keep(run)
      this.#options.hub.receiveRun(publicRun(run))
      return run
    })
    this.#lastChange = turn.catch(() => undefined)
    return this.#patiently(() => turn).catch((error: unknown) => {
      isGivenUp = true
      throw error
    })
  }

  /** Applies and publishes one journaled batch. Called in the order of the journal, one at a time. */
  async #apply(entry: JournalEntry): Promise<void> {
    const progress = await this.#registry.progressOf(entry.run)
    // Forgotten between its request and now: the answer is that there is no such run.
    if (!progress) return
    const isJudged = this.#unstored.isEmpty ? undefined : (received: ReceivedStep) => this.#unstored.has(entry.run, received)
    const { steps, judged, outcome } = applyBatch(progress, entry.run, entry.body, entry.receivedAt, isJudged)
    if (judged.length > 0) this.#options.judge?.skip(judged)
    const [step] = steps
    const record = step ? this.recordings.orderFor(entry.run, step.rank, progress) : null
    this.#outcomes.set(entry, record ? { ...outcome, record } : outcome)
    this.#counts.steps += outcome.accepted
    this.#counts.duplicates += outcome.duplicates
    this.#counts.rejected += outcome.rejected_count
    if (outcome.accepted > 0) {
      this.#registry.touch(entry.run, progress, entry.receivedAt)
      // First: detectors pass over the steps of a run that is over.
      if (this.#registry.get(entry.run)?.endIsPresumed) await this.#reopen(entry.run)
    }
    await this.#publish(steps)
  }

  /** The steps are safe whether or not this can be written. */
  async #reopen(id: string): Promise<void> {
    await this.#change(id, (known) => (known?.endIsPresumed ? reopened(known, this.#now()) : null)).catch(this.#couldNotKeep)
  }

  #journalRemoved(path: string): void {
    this.#log.warn(
      { path },
      'the journal of steps was removed while it was being written: a new one was started, and the runs are saved again',
    )
    this.#registry
      .writeAgain()
      .then(() => this.checkpoint())
      .catch(this.#couldNotKeep)
  }

  readonly #couldNotKeep = (error: unknown) =>
    this.#log.warn({ err: error }, 'the state of a run could not be written; it will be tried again')

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

  checkpoint(): Promise<void> {
    return this.#checkpoints.write()
  }

  async #open(): Promise<void> {
    for (const fault of await this.#registry.load()) this.#log.warn({}, fault)
    const { dir, hub, recording } = this.#options
    // A recording of something else has no runs beside it.
    if (recording !== undefined) this.played?.load(await recordedRuns(recording))
    if (dir === null) return
    for (const run of await this.#simulated.leftOpen()) hub.receiveRun(publicRun(run))
    const left = await recoverSteps(dir, this.#registry)
    if (left === null) return
    this.#counts.recoveredSteps = left.missing.length
    await this.#publish(left.missing)
    // They are deleted at the next checkpoint, when the log is known to hold these steps.
    this.#journal.adopt(left.paths)
    this.#log.info({ steps: left.steps, missing: left.missing.length }, 'recovered steps that an earlier process had received')
  }
}
