/** The runs that are remembered: the least recently heard of is forgotten first, ended ones before others. */
import { toJson } from './json-text.ts'
import { Progress } from './progress.ts'
import type { RunFiles } from './run-files.ts'
import type { RunRecord } from './run-record.ts'

interface Entry {
  run: RunRecord
  /** null: on disk, not needed at the moment. */
  progress: Progress | null
  dirty: boolean
}

/** Ended runs whose progress stays in memory, for whoever looks at them. */
const MOST_ENDED_LOADED = 16

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
    for (const run of runs) this.#entries.set(run.id, { run, progress: null, dirty: false })
    await this.#forgetSome()
    return faults
  }

  get size(): number {
    return this.#entries.size
  }

  get(id: string): RunRecord | undefined {
    return this.#entries.get(id)?.run
  }

  /** Most recently heard of first. */
  list(): readonly RunRecord[] {
    return Array.from(this.#entries.values(), ({ run }) => run).reverse()
  }

  /** Remembers the run, on disk too, before it returns. */
  async keep(run: RunRecord): Promise<void> {
    const before = this.#entries.get(run.id)
    await this.#files?.saveRun(run)
    const entry = this.#entries.get(run.id) ?? before ?? { run, progress: new Progress(), dirty: true }
    entry.run = run
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
      // Somebody else may have loaded it in the meantime.
      entry.progress ??= progress
      this.#unloadSome(id)
    }
    return entry.progress
  }

  touch(id: string): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    entry.dirty = true
    this.#entries.delete(id)
    this.#entries.set(id, entry)
  }

  /** The progress of all runs that changed, as text, taken at one moment. */
  takeDirty(): { id: string; text: string }[] {
    const taken: { id: string; text: string }[] = []
    for (const [id, entry] of this.#entries) {
      if (!entry.dirty || !entry.progress) continue
      entry.dirty = false
      taken.push({ id, text: toJson(entry.progress.snapshot()) })
    }
    return taken
  }

  markDirty(ids: readonly string[]): void {
    for (const id of ids) {
      const entry = this.#entries.get(id)
      if (entry) entry.dirty = true
    }
  }

  async saveProgress(taken: readonly { id: string; text: string }[]): Promise<void> {
    for (const { id, text } of taken) if (this.#entries.has(id)) await this.#files?.saveProgress(id, text)
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

  #unloadSome(except: string): void {
    if (!this.#files) return
    const loaded = [...this.#entries.values()].filter(({ run, progress, dirty }) => progress && !dirty && run.endedAt !== null)
    for (const entry of loaded.slice(0, -MOST_ENDED_LOADED)) if (entry.run.id !== except) entry.progress = null
  }
}
