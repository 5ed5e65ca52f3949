/** Takes batches of steps: each is journaled first, then applied to its run and published to the hub. */
import { join } from 'node:path'
import type { Log } from '../core/kinds.ts'
import type { TrainingStep } from '../core/model.ts'
import { applyBatch, type BatchOutcome } from './batch.ts'
import { Journal, type JournalEntry } from './journal.ts'
import type { Progress } from './progress.ts'
import type { Recordings } from './recordings.ts'
import { recoverSteps } from './recovery.ts'
import type { Registry } from './registry.ts'
import type { Patiently, RunChanges } from './run-changes.ts'
import { reopened } from './run-record.ts'
import { mayGoOn } from './silent-runs.ts'
import type { Standstills } from './standstills.ts'
import type { ReceivedStep } from './step-line.ts'
import type { TrainingOptions } from './training-contract.ts'
import { UnstoredSteps } from './unstored-steps.ts'

/** What may wait for the log: well below its buffer, so that it never drops a step. */
const FLUSH_STEPS = 4096
const CHUNK_STEPS = 2048
const JOURNAL_BYTES = 16 * 1024 * 1024

export interface StepIntakeOptions extends Pick<TrainingOptions, 'hub' | 'dir' | 'judge' | 'flush' | 'lookEveryMs'> {
  readonly log: Log
  readonly now: () => number
  readonly registry: Registry
  readonly changes: RunChanges
  readonly recordings: Recordings
  readonly standstills: Standstills
  readonly patiently: Patiently
  readonly checkpoint: () => Promise<void>
}

export class StepIntake {
  readonly journal: Journal
  readonly counts = { steps: 0, duplicates: 0, rejected: 0, recoveredSteps: 0 }
  readonly #options: StepIntakeOptions
  readonly #unstored = new UnstoredSteps()
  readonly #outcomes = new WeakMap<JournalEntry, BatchOutcome>()
  #unflushed = 0
  #reason: string | null = null

  constructor(options: StepIntakeOptions) {
    this.#options = options
    this.journal = new Journal(
      options.dir === null ? null : join(options.dir, 'runs'),
      (entry) => this.#apply(entry),
      (path) => this.#journalRemoved(path),
      options.lookEveryMs,
    )
  }

  /** Why the last batch was refused; null: it was taken. */
  get reason(): string | null {
    return this.#reason
  }

  /** null: no such run. Rejects when the batch cannot be made durable. */
  async post(id: string, body: Buffer, rank?: number): Promise<BatchOutcome | null> {
    const { registry, now, log, patiently, checkpoint } = this.#options
    if (!registry.get(id)) return null
    if (body.length === 0) return this.#sign(id, rank ?? null)
    const entry: JournalEntry = { run: id, receivedAt: now(), body }
    try {
      await patiently(() => this.journal.append(entry))
    } catch (error) {
      this.journal.withdraw(entry)
      await this.#judgeUnstored(entry)
      if (this.#reason === null) log.error({ err: error }, 'steps cannot be written and are refused; the senders will try again')
      this.#reason = (error as Error).message
      throw error
    }
    this.#reason = null
    if (this.journal.bytes > JOURNAL_BYTES) void checkpoint()
    return this.#outcomes.get(entry) ?? null
  }

  /** Publishes the steps that an earlier process acknowledged and the log lacks. */
  async recover(dir: string): Promise<void> {
    const left = await recoverSteps(dir, this.#options.registry)
    if (left === null) return
    this.counts.recoveredSteps = left.missing.length
    await this.#publish(left.missing)
    // They are deleted at the next checkpoint, when the log is known to hold these steps.
    this.journal.adopt(left.paths)
    this.#options.log.info({ steps: left.steps, missing: left.missing.length }, 'recovered steps that an earlier process had received')
  }

  /** The run is over: its refused steps are not expected again. */
  forget(id: string): void {
    this.#unstored.forget(id)
  }

  /** A disk that is full must not hide a NaN: the alert need not wait until the step can be stored. */
  async #judgeUnstored({ run, body, receivedAt }: JournalEntry): Promise<void> {
    const { judge, registry } = this.#options
    if (!judge) return
    const progress = await registry.progressOf(run).catch(() => null)
    const steps = this.#unstored.take(run, body, receivedAt, (received) => progress?.has(received) ?? false)
    if (steps.length > 0) judge.judge(steps)
  }

  /** Applies and publishes one journaled batch. Called in the order of the journal, one at a time. */
  async #apply(entry: JournalEntry): Promise<void> {
    const { registry, judge } = this.#options
    const progress = await registry.progressOf(entry.run)
    // Forgotten between its request and now: the answer is that there is no such run.
    if (!progress) return
    const isJudged = this.#unstored.isEmpty ? undefined : (received: ReceivedStep) => this.#unstored.has(entry.run, received)
    const { steps, judged, outcome } = applyBatch(progress, entry.run, entry.body, entry.receivedAt, isJudged)
    if (judged.length > 0) judge?.skip(judged)
    const [step] = steps
    this.#outcomes.set(entry, { ...outcome, ...(step ? this.#orders(entry.run, step.rank, progress) : {}) })
    this.counts.steps += outcome.accepted
    this.counts.duplicates += outcome.duplicates
    this.counts.rejected += outcome.rejected_count
    if (outcome.accepted > 0) {
      registry.touch(entry.run, progress, entry.receivedAt)
      // First: detectors pass over the steps of a run that is over.
      if (registry.get(entry.run)?.endIsPresumed) await this.#reopen(entry.run)
    }
    await this.#publish(steps)
  }

  /** A rank lives but has no step to report: it only asks whether something is wanted of it. Nothing is written. */
  async #sign(id: string, rank: number | null): Promise<BatchOutcome | null> {
    const { registry, standstills, now } = this.#options
    const progress = await registry.progressOf(id)
    if (!progress) return null
    standstills.noteSign(id, progress)
    const { outcome } = applyBatch(progress, id, Buffer.alloc(0), now())
    return rank === null ? outcome : { ...outcome, ...this.#orders(id, rank, progress) }
  }

  #orders(id: string, rank: number, progress: Progress): Pick<BatchOutcome, 'record' | 'stacks'> {
    const { recordings, standstills } = this.#options
    const record = recordings.orderFor(id, rank, progress)
    const stacks = standstills.orderFor(id, rank)
    return { ...(record ? { record } : {}), ...(stacks ? { stacks } : {}) }
  }

  /** The steps are safe whether or not this can be written. Those of a process that is gone, found in its spool, do not revive it. */
  async #reopen(id: string): Promise<void> {
    const { changes, now } = this.#options
    await changes
      .change(id, (known) => (known?.endIsPresumed && mayGoOn(known) ? reopened(known, now()) : null))
      .catch(changes.couldNotKeep)
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

  #journalRemoved(path: string): void {
    const { log, registry, checkpoint, changes } = this.#options
    log.warn({ path }, 'the journal of steps was removed while it was being written: a new one was started, and the runs are saved again')
    registry.writeAgain().then(checkpoint).catch(changes.couldNotKeep)
  }
}
