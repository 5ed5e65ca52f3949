/** What the training room needs and what it gives. */
import type { HubEvent, Log, Sink } from '../core/kinds.ts'
import type { Finding, Provenance, Run, TrainingStep } from '../core/model.ts'
import type { Route } from '../core/route.ts'
import type { RunTime } from '../core/run-time.ts'
import type { BatchOutcome } from './batch.ts'
import type { Progress } from './progress.ts'
import type { Recordings } from './recordings.ts'
import type { ListedRun } from './registry.ts'
import type { ReportKind, ReportOutcome, ReportProgram } from './report-process.ts'
import type { RunEnd, RunPost, RunRecord } from './run-record.ts'
import type { TrainingValues } from './settings.ts'
import type { Standstills } from './standstills.ts'

/** What of the hub is needed here. */
export interface StepReceiver {
  receiveRun(run: Run): void
  receiveSteps(steps: readonly TrainingStep[], provenance?: Provenance): void
}

/** The detectors. */
export interface StepJudge {
  /** Shows steps to them alone: they are not stored. */
  judge(steps: readonly TrainingStep[]): void
  /** These were judged, and are about to be published: they are not shown again. */
  skip(steps: readonly TrainingStep[]): void
  /** False: they were saved before this run became what it is, and must be told again. */
  hasSeen(run: Run): boolean
}

export interface TrainingOptions {
  readonly hub: StepReceiver
  /** The log folder; runs are kept in `runs/` below it. null: in memory only. */
  readonly dir: string | null
  readonly log: Log
  readonly now?: () => number
  /** Since the clock of `now` was set; never, where it is not given. */
  readonly sinceJumpMs?: () => number
  readonly settings?: TrainingValues
  /** How often the open journal is compared with its path. */
  readonly lookEveryMs?: number
  /** Who judges runs and steps, also steps that cannot be stored; without it nobody does. */
  readonly judge?: StepJudge
  /** Has what the hub was given been written to the log? Resolves with false while it cannot be. Without it nothing is waited for. */
  readonly flush?: () => Promise<boolean>
  /** The recording that is played, if one is: its runs are shown as they were at each moment. */
  readonly recording?: string
  /** Where the SDKs of this user keep what they cannot deliver; without it nobody looks there. */
  readonly spoolFolder?: string | null
  /** Label of the GPU that a process uses; without it no GPU is named. */
  readonly gpuOf?: (pid: number) => string | null
  /** What makes reports; without it the routes for them refuse. */
  readonly report?: ReportProgram
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
  /** Follows the recording that is played. */
  readonly played: Sink | null
  readonly routes: readonly Route[]
  readonly recordings: Recordings
  readonly standstills: Standstills
  /**
   * Reads what an earlier process left; to be called when the hub's sinks are in place. Routes wait for it, though not for a disk that does
   * not answer: this rejects with DiskStuck then, as do the others, and goes on by itself when the disk does.
   */
  open(): Promise<void>
  health(): TrainingHealth
  postRun(post: RunPost): Promise<{ run: RunRecord; created: boolean }>
  /** null: no such run. Rejects when the batch cannot be made durable. */
  /** `rank`: whose sign of life an empty body is. */
  postSteps(id: string, body: Buffer, rank?: number): Promise<BatchOutcome | null>
  endRun(id: string, end: RunEnd): Promise<RunRecord | null>
  keepReport(id: string, report: Readonly<Record<string, unknown>>): Promise<boolean>
  /** Asks the run of a leak or a stall for what its SDK can say. */
  noteFinding(finding: Finding): void
  /** Keeps the runs and steps of a simulation, which come through the hub. */
  accept(event: HubEvent): void
  /** Most recently heard of first. */
  runs(): readonly ListedRun[]
  recordOf(id: string): RunRecord | null
  /** What its wall time went to so far; null: it is not in memory. */
  timeOf(id: string): RunTime | null
  find(id: string): Promise<{ run: RunRecord; progress: Progress } | null>
  /** Its report; null: nothing is logged. */
  report(id: string, kind: ReportKind): Promise<ReportOutcome | null>
  /** Where reports come from: the log, or the recording that is played. */
  readonly logDir: string | null
  /** Closes runs that ended without a word; returns how many. Done at intervals anyway. */
  closeSilentRuns(): Promise<number>
  /** Writes down how far every run has come, and shortens the journal. Done at intervals anyway; what fails is logged and tried again. */
  checkpoint(): Promise<void>
  /** Whether all steps so far are in the log. */
  flush(): Promise<boolean>
  /** Writes down all progress. The store is to be closed after it. */
  close(): Promise<void>
}
