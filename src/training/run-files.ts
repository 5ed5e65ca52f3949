/**
 * The runs on disk, three files each: `ID.run.json` is what is known of it, written when that changes; `ID.progress.json`
 * is how far it came, written at checkpoints only, because it must never be ahead of what the log of steps holds;
 * `ID.figures.json` is the part of the latter that a list shows, so that a list need not read it all.
 */
import { join } from 'node:path'
import { open, readdir, readFile, rename, rm } from '../core/disk.ts'
import { toJson } from '../core/json-text.ts'
import { ensureFolder, syncFolder } from './durable.ts'
import { type RunRecord, UNKNOWN_PARTS } from './run-record.ts'

const RUN = '.run.json'
const PROGRESS = '.progress.json'
const FIGURES = '.figures.json'

export class RunFiles {
  readonly dir: string
  #writes = 0

  constructor(dir: string) {
    this.dir = dir
  }

  /** Every run that can be read, least recently updated first, and what is wrong with the others. */
  async list(): Promise<{ runs: RunRecord[]; faults: string[] }> {
    const names = await readdir(this.dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    const runs: RunRecord[] = []
    const faults: string[] = []
    for (const name of names) {
      if (name.endsWith('.tmp')) await rm(join(this.dir, name), { force: true })
      if (!name.endsWith(RUN)) continue
      const run = (await this.#read(name)) as RunRecord | null
      if (run !== null && `${run.id}${RUN}` === name && typeof run.startedAt === 'number') runs.push({ ...UNKNOWN_PARTS, ...run })
      else faults.push(`${join(this.dir, name)} does not hold a run`)
    }
    return { runs: runs.sort((a, b) => a.updatedAt - b.updatedAt), faults }
  }

  progressOf(id: string): Promise<unknown> {
    return this.#read(`${id}${PROGRESS}`)
  }

  figuresOf(id: string): Promise<unknown> {
    return this.#read(`${id}${FIGURES}`)
  }

  async saveRun(run: RunRecord): Promise<void> {
    await this.#replace(`${run.id}${RUN}`, toJson(run))
    await syncFolder(this.dir)
  }

  /** Lasting only after `sync`. */
  async saveProgress(id: string, progress: string, figures: string): Promise<void> {
    await this.#replace(`${id}${PROGRESS}`, progress)
    await this.#replace(`${id}${FIGURES}`, figures)
  }

  sync(): Promise<void> {
    return syncFolder(this.dir)
  }

  async remove(id: string): Promise<void> {
    for (const kind of [RUN, PROGRESS, FIGURES]) await rm(join(this.dir, id + kind), { force: true })
  }

  /** null: not there, or not what we wrote. */
  async #read(name: string): Promise<unknown> {
    try {
      return JSON.parse(await readFile(join(this.dir, name), 'utf8')) as unknown
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return null
      throw error
    }
  }

  async #replace(name: string, text: string): Promise<void> {
    await ensureFolder(this.dir)
    const temporary = join(this.dir, `${name}.${process.pid}.${this.#writes++}.tmp`)
    // A command line may hold what is nobody else's business.
    try {
      const file = await open(temporary, 'w', 0o600)
      try {
        await file.writeFile(text)
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(temporary, join(this.dir, name))
    } catch (error) {
      // On a full disk every try would leave one.
      await rm(temporary, { force: true })
      throw error
    }
  }
}
