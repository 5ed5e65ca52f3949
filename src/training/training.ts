/** The training room: takes runs and steps from SDKs, stores them safely, and passes them to the hub. */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DiskStuck, logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import type { HubEvent, Log } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { Route } from '../core/route.ts'
import type { RunTime } from '../core/run-time.ts'
import { MISTRUST_MS } from '../core/wall-clock.ts'
import type { BatchOutcome } from './batch.ts'
import { Checkpoints } from './checkpoints.ts'
import { layerRoutes } from './layer-routes.ts'
import { PlayedRuns } from './played-runs.ts'
import type { Progress } from './progress.ts'
import { recordingRoutes } from './recording-routes.ts'
import { Recordings } from './recordings.ts'
import { type ListedRun, Registry } from './registry.ts'
import { type ReportKind, ReportMaker, type ReportOutcome } from './report-process.ts'
import { reportRoutes } from './report-routes.ts'
import { trainingRoutes } from './routes.ts'
import { type Patiently, RunChanges } from './run-changes.ts'
import { RunFiles, recordedRuns } from './run-files.ts'
import { endRun, endsInNan, mergeRun, newRun, publicRun, type RunEnd, type RunPost, type RunRecord } from './run-record.ts'
import { TRAINING_DEFAULTS } from './settings.ts'
import { closeRuns, mayGoOn, presumedEnd, seenProcess } from './silent-runs.ts'
import { SimulatedRuns } from './simulated-runs.ts'
import { stackRoutes } from './stack-routes.ts'
import { Standstills } from './standstills.ts'
import { StepIntake } from './step-intake.ts'
import type { Training, TrainingHealth, TrainingOptions } from './training-contract.ts'
import { takeWaitingSpools } from './waiting-spools.ts'

const LOOK_FOR_SILENT_MS = 15_000

export type { StepReceiver, Training, TrainingHealth, TrainingOptions } from './training-contract.ts'

export function createTraining(options: TrainingOptions): Training {
  return new TrainingRoom(options)
}

class TrainingRoom implements Training {
  readonly routes: readonly Route[]
  readonly logDir: string | null
  readonly recordings: Recordings
  readonly standstills: Standstills
  readonly recordOf = (id: string): RunRecord | null => this.#registry.get(id) ?? null
  readonly timeOf = (id: string): RunTime | null => this.#registry.timeOf(id, this.#now())
  /** null: nothing is kept. */
  readonly #dir: string | null
  readonly #options: TrainingOptions
  readonly #now: () => number
  readonly #log: Log
  readonly #registry: Registry
  readonly #simulated: SimulatedRuns
  readonly #changes: RunChanges
  readonly #intake: StepIntake
  readonly #checkpoints: Checkpoints
  readonly #reports: ReportMaker | null
  readonly played: PlayedRuns | null
  readonly #patiently: Patiently = (work) => (this.#dir === null ? work() : logLane.patiently(work))
  readonly #timers: readonly NodeJS.Timeout[]
  readonly #staleMs: number | null
  readonly #since: number
  #opened: Promise<void> | null = null
  #isClosingSilent = false
  #isClosed = false

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
    this.#simulated = new SimulatedRuns(this.#registry, this.#now, (run) => options.hub.receiveRun(publicRun(run)))
    const shared = { log: this.#log, registry: this.#registry, patiently: this.#patiently }
    this.#changes = new RunChanges({ ...shared, hub: options.hub })
    this.recordings = new Recordings({
      ...{ asksByItself: settings['training.record_leaks'], now: this.#now, log: this.#log },
      run: (id) => this.#registry.get(id),
      change: (id, make) => this.#changes.change(id, make),
    })
    this.standstills = new Standstills({
      ...{ now: this.#now, log: this.#log, rasPort: settings['training.nccl_ras_port'] },
      run: (id) => this.#registry.get(id),
      progress: (id) => this.#registry.progressOf(id),
      change: (id, make) => this.#changes.change(id, make),
      ...(options.gpuOf ? { gpuOf: options.gpuOf } : {}),
    })
    const { recordings, standstills } = this
    this.#intake = new StepIntake({
      ...{ ...options, ...shared, now: this.#now, changes: this.#changes, recordings, standstills },
      checkpoint: () => this.checkpoint(),
    })
    this.#checkpoints = new Checkpoints({
      ...{ logDir: this.#dir, log: this.#log, journal: this.#intake.journal, registry: this.#registry },
      opened: () => this.#opened,
      flush: () => this.flush(),
    })
    const { report, recording, hub } = options
    const reported = recording ?? this.#dir
    this.logDir = reported
    this.#reports = report && reported !== null ? new ReportMaker(report, reported) : null
    this.played = recording === undefined ? null : new PlayedRuns((run) => hub.receiveRun(run))
    this.routes = [
      ...[...trainingRoutes(this, this.#now), ...recordingRoutes(this, this.#now), ...stackRoutes(this)],
      ...[...layerRoutes(this), ...reportRoutes(this)],
    ]
    this.#timers = [
      setInterval(() => void this.checkpoint(), settings['training.checkpoint_seconds'] * 1000).unref(),
      setInterval(() => void this.closeSilentRuns().catch(this.#changes.couldNotKeep), LOOK_FOR_SILENT_MS).unref(),
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
      ...this.#intake.counts,
      journalBytes: this.#intake.journal.bytes,
      reason: this.#intake.reason ?? (this.#dir === null ? null : (logLane.stuck()?.message ?? null)),
    }
  }

  async postRun(post: RunPost): Promise<{ run: RunRecord; created: boolean }> {
    await this.open()
    let created = false
    let known: RunRecord | undefined
    let merged: RunRecord | undefined
    const run = await this.#changes
      .change(post.id, (before) => {
        known = before
        created = before === undefined
        const process = seenProcess(post)
        merged = before ? mergeRun(before, post, this.#now(), process) : newRun(post, this.#now(), process)
        return merged
      })
      .catch((error: unknown) => {
        // Announced again with nothing new: all of it is stored, whatever the disk says now.
        if (known && merged && isDeepStrictEqual({ ...merged, updatedAt: known.updatedAt }, known)) return known
        throw error
      })
    if (!run) throw new Error(`run ${post.id} was not made`)
    return { run, created }
  }

  async postSteps(id: string, body: Buffer, rank?: number): Promise<BatchOutcome | null> {
    await this.open()
    return this.#intake.post(id, body, rank)
  }

  async endRun(id: string, told: RunEnd): Promise<RunRecord | null> {
    await this.open()
    const isOfAll = told.outcome === 'success' && (told.rank === null || told.rank === 0)
    const progress = isOfAll ? await this.#patiently(() => this.#registry.progressOf(id)) : null
    // A program that trained with NaN to its last step ended without an error, but did not succeed.
    const end: RunEnd = progress && endsInNan(progress.figures()) ? { ...told, outcome: 'nan' } : told
    const run = await this.#changes.change(id, (known) => (known ? endRun(known, end, this.#now()) : null))
    // Whoever ends a run looks at its log next.
    if (run && run.endedAt !== null) {
      this.recordings.drop(id)
      this.standstills.drop(id)
      this.#intake.forget(id)
      await this.#options.flush?.()
    }
    return run
  }

  async keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean> {
    await this.open()
    return (await this.#changes.change(id, (known) => (known ? { ...known, report, updatedAt: this.#now() } : null))) !== null
  }

  noteFinding(finding: Finding): void {
    this.recordings.noteFinding(finding)
    this.standstills.noteFinding(finding)
  }

  accept(event: HubEvent): void {
    // A recording has its own runs.
    const work = this.played ? null : this.#simulated.take(event)
    if (work) this.#changes.workAfter(this.#openOnce(), work)
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
      await this.#takeLastWords()
      return await closeRuns({
        runs: this.#registry.list(),
        endOf: (run) => presumedEnd(run, this.#registry.heardAt(run.id), this.#since, this.#now(), this.#trustedStaleMs()),
        change: (id, make) => this.#changes.change(id, make),
      })
    } finally {
      this.#isClosingSilent = false
    }
  }

  /** Of runs whose processes are gone: they may have ended well while no agent answered. */
  async #takeLastWords(): Promise<void> {
    const { spoolFolder } = this.#options
    if (!spoolFolder) return
    for (const run of this.#registry.list())
      if (run.endedAt === null && !mayGoOn(run)) await takeWaitingSpools(spoolFolder, run.id, this, this.#now)
  }

  /** After a jump of the clock, which may come while a change waits for the disk, the age of a silence is not known. */
  #trustedStaleMs(): number | null {
    return (this.#options.sinceJumpMs?.() ?? MISTRUST_MS) < MISTRUST_MS ? null : this.#staleMs
  }

  async flush(): Promise<boolean> {
    const isWritten = (await this.#options.flush?.()) ?? true
    // The log is closed after this room, whether or not the disk answered in time: what comes later stays in the journal.
    return isWritten && !this.#isClosed
  }

  async find(id: string): Promise<{ run: RunRecord; progress: Progress } | null> {
    await this.open()
    const played = this.played?.find(id)
    if (played) return played
    const run = this.#registry.get(id)
    const progress = await this.#patiently(() => this.#registry.progressOf(id))
    return run && progress ? { run, progress } : null
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
    } finally {
      this.#isClosed = true
    }
  }

  async #finish(): Promise<void> {
    // What could not be read at the start was logged, and stays for the next start.
    const isOpen = await this.#opened?.then(() => true).catch(() => false)
    if (!isOpen) return
    await this.#changes.settled()
    await this.#checkpoints.writeLast()
    await this.#intake.journal.close()
  }

  checkpoint(): Promise<void> {
    return this.#checkpoints.write()
  }

  async #open(): Promise<void> {
    for (const fault of await this.#registry.load()) this.#log.warn({}, fault)
    const { dir, hub, recording, judge } = this.#options
    // A recording of something else has no runs beside it.
    if (recording !== undefined) this.played?.load(await recordedRuns(recording))
    if (dir === null) return
    for (const run of await this.#simulated.leftOpen()) hub.receiveRun(publicRun(run))
    await this.#intake.recover(dir)
    // A run is stored before it is announced, so a kill may have come in between. The oldest first: one that was started again
    // ends the alert about its death.
    for (const run of this.#registry.list().map(publicRun).reverse()) if (judge?.hasSeen(run) === false) hub.receiveRun(run)
  }
}
