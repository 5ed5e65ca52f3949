/** The known runs: the one silent longest is forgotten first, ended ones before others. */
import { toJson } from '../core/json-text.ts'
import type { RunTime } from '../core/run-time.ts'
import { type ListedFigures, listedFigures, restoredFigures } from './listed-figures.ts'
import { Progress } from './progress.ts'
import type { RunFiles, SavedProgress } from './run-files.ts'
import type { RunRecord } from './run-record.ts'

interface Entry {
  run: RunRecord
  /** null: on disk, not needed now. */
  progress: Progress | null
  /** Of a progress that is only on disk; null when there is none yet, or it is in memory. */
  figures: ListedFigures | null
  dirty: boolean
  /** Taken to be written, and not known to be on disk yet. */
  isSaving?: boolean
  heardAt: number
}

export interface ListedRun {
  readonly run: RunRecord
  readonly figures: ListedFigures | null
  /** When the run last reported anything. */
  readonly heardAt: number
}

/** Idle runs whose progress stays in memory although it is on disk too, for people who look at them. */
const MOST_AT_REST = 16
/** A run that reported within this time of the latest one is probably still running. */
const ACTIVE_MS = 10 * 60_000

export class Registry {
  readonly #files: RunFiles | null
  readonly #most: number
  readonly #entries = new Map<string, Entry>()
  forgotten = 0

  constructor(files: RunFiles | null, most: number) {
    this.#files = files
    this.#most = most
  }

  /** Returns what is wrong with files that could not be read. */
  async load(): Promise<readonly string[]> {
    if (!this.#files) return []
    const { runs, faults } = await this.#files.list()
    for (const run of runs) {
      const figures = restoredFigures(await this.#files.figuresOf(run.id))
      const heardAt = Math.max(run.updatedAt, figures?.lastStepAt ?? 0)
      this.#entries.set(run.id, { run, progress: null, figures, dirty: false, heardAt })
    }
    await this.#forgetSome()
    return faults
  }

  get size(): number {
    return this.#entries.size
  }

  get(id: string): RunRecord | undefined {
    return this.#entries.get(id)?.run
  }

  /** null: there is no such run, or its progress is only on disk. */
  timeOf(id: string, now: number): RunTime | null {
    const entry = this.#entries.get(id)
    return entry?.progress?.time(entry.run, now) ?? null
  }

  heardAt(id: string): number {
    return this.#entries.get(id)?.heardAt ?? 0
  }

  /** Most recently active first. */
  list(): readonly RunRecord[] {
    return Array.from(this.#entries.values(), ({ run }) => run).reverse()
  }

  /** Most recently active first, with what a list shows of each. */
  overview(): readonly ListedRun[] {
    return Array.from(this.#entries.values(), ({ run, progress, figures, heardAt }) => ({
      run,
      figures: progress ? listedFigures(progress) : figures,
      heardAt,
    })).reverse()
  }

  /** Stores the run, on disk too, before it returns. */
  async keep(run: RunRecord): Promise<void> {
    const before = this.#entries.get(run.id)
    await this.#files?.saveRun(run)
    const entry = this.#entries.get(run.id) ?? before ?? { run, progress: new Progress(), figures: null, dirty: true, heardAt: 0 }
    entry.run = run
    entry.heardAt = Math.max(entry.heardAt, run.updatedAt)
    this.#entries.delete(run.id)
    this.#entries.set(run.id, entry)
    await this.#forgetSome()
  }

  async progressOf(id: string): Promise<Progress | null> {
    const entry = this.#entries.get(id)
    if (!entry) return null
    if (entry.progress === null) {
      const progress = new Progress()
      const saved = await this.#files?.progressOf(id)
      if (saved) progress.restore(saved)
      progress.layers.restore(await this.#files?.layersOf(id))
      // Another call may have loaded it in the meantime.
      entry.progress ??= progress
      entry.figures = null
      this.#unloadSome(id)
    }
    return entry.progress
  }

  /** It lives, without anything new to keep. */
  hear(id: string, at: number): void {
    const entry = this.#entries.get(id)
    if (entry) entry.heardAt = Math.max(entry.heardAt, at)
  }

  /** `progress` has changed. It counts even if it was evicted between the request and the change. */
  touch(id: string, progress: Progress, at: number): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    entry.progress = progress
    entry.figures = null
    entry.dirty = true
    entry.heardAt = Math.max(entry.heardAt, at)
    this.#entries.delete(id)
    this.#entries.set(id, entry)
  }

  /** The progress of all runs that changed, as text, taken at one moment. */
  takeDirty(): SavedProgress[] {
    const taken: SavedProgress[] = []
    for (const [id, entry] of this.#entries) {
      if (!entry.dirty || !entry.progress) continue
      entry.dirty = false
      entry.isSaving = true
      taken.push({
        id,
        progress: toJson(entry.progress.snapshot()),
        figures: toJson(listedFigures(entry.progress)),
        layers: entry.progress.layers.takeChanged(),
      })
    }
    return taken
  }

  /** The files were removed: all that is in memory is written again, the runs at once, their progress at the next checkpoint. */
  async writeAgain(): Promise<void> {
    for (const entry of [...this.#entries.values()]) {
      if (entry.progress) entry.dirty = true
      entry.progress?.layers.markChanged()
      await this.#files?.saveRun(entry.run)
    }
  }

  markDirty(ids: readonly string[]): void {
    for (const id of ids) {
      const entry = this.#entries.get(id)
      if (entry) Object.assign(entry, { dirty: true, isSaving: false })
      entry?.progress?.layers.markChanged()
    }
  }

  /** Durable on disk when it resolves. */
  async saveProgress(taken: readonly SavedProgress[]): Promise<void> {
    for (const one of taken) if (this.#entries.has(one.id)) await this.#files?.saveProgress(one)
    if (taken.length > 0) await this.#files?.sync()
    for (const { id } of taken) {
      const entry = this.#entries.get(id)
      if (entry) entry.isSaving = false
    }
    this.#unloadSome('')
  }

  async #forgetSome(): Promise<void> {
    while (this.#entries.size > this.#most) {
      const all = [...this.#entries.values()]
      const oldest = (all.find(({ run }) => run.endedAt !== null) ?? all[0])?.run
      if (!oldest) return
      this.#entries.delete(oldest.id)
      this.forgotten++
      await this.#files?.remove(oldest.id)
    }
  }

  /** The longest silent first. What is not on disk yet stays, and so does what is likely needed again soon. */
  #unloadSome(except: string): void {
    if (!this.#files) return
    const all = [...this.#entries.values()]
    const latest = all.reduce((at, { heardAt }) => Math.max(at, heardAt), 0)
    const atRest = all.filter(
      ({ run, progress, dirty, isSaving, heardAt }) =>
        progress && !dirty && !isSaving && (run.endedAt !== null || heardAt < latest - ACTIVE_MS),
    )
    for (const entry of atRest.slice(0, -MOST_AT_REST)) {
      if (entry.run.id === except || !entry.progress) continue
      entry.figures = listedFigures(entry.progress)
      entry.progress = null
    }
  }
}
