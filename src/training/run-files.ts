/**
 * The runs on disk, three or four files each: `ID.run.json` is the run, written when it changes; `ID.progress.json` is its progress, written at
 * checkpoints only, because it must never be ahead of the step log; `ID.figures.json` is the part of it that a list shows, `ID.layers.json`
 * the figures of its model's layers.
 */
import { join } from 'node:path'
import { open, readdir, readFile, rename, rm } from '../core/disk.ts'
import { toJson } from '../core/json-text.ts'
import { NotAFile } from '../core/system-file.ts'
import { ensureFolder, syncFolder } from './durable.ts'
import { type RunRecord, UNKNOWN_PARTS } from './run-record.ts'

const RUN = '.run.json'
const PROGRESS = '.progress.json'
const FIGURES = '.figures.json'
const LAYERS = '.layers.json'

/** The runs beside a recording; none where it is a single file, or was not made by gpuwarden. */
export async function recordedRuns(path: string): Promise<readonly RunRecord[]> {
  const { runs } = await new RunFiles(join(path, 'runs')).list().catch(() => ({ runs: [] }))
  return runs
}

export interface SavedProgress {
  readonly id: string
  readonly progress: string
  readonly figures: string
  /** null: as it is on disk. */
  readonly layers: string | null
}

export class RunFiles {
  readonly dir: string
  #writes = 0

  constructor(dir: string) {
    this.dir = dir
  }

  /** Every readable run, least recently updated first, and what is wrong with the others. */
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

  layersOf(id: string): Promise<unknown> {
    return this.#read(`${id}${LAYERS}`)
  }

  async saveRun(run: RunRecord): Promise<void> {
    await this.#replace(`${run.id}${RUN}`, toJson(run))
    await syncFolder(this.dir)
  }

  /** Durable only after `sync`. */
  async saveProgress({ id, progress, figures, layers }: SavedProgress): Promise<void> {
    if (layers !== null) await this.#replace(`${id}${LAYERS}`, layers)
    // Killed in between, steps that the progress lacks are recovered from the journal, and both are written again.
    await this.#replace(`${id}${FIGURES}`, figures)
    await this.#replace(`${id}${PROGRESS}`, progress)
  }

  sync(): Promise<void> {
    return syncFolder(this.dir)
  }

  async remove(id: string): Promise<void> {
    for (const kind of [RUN, PROGRESS, FIGURES, LAYERS]) await rm(join(this.dir, id + kind), { force: true })
  }

  /** null: not there, or not what we wrote. */
  async #read(name: string): Promise<unknown> {
    try {
      return JSON.parse(await readFile(join(this.dir, name), 'utf8')) as unknown
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError || error instanceof NotAFile) return null
      throw error
    }
  }

  async #replace(name: string, text: string): Promise<void> {
    await ensureFolder(this.dir)
    const temporary = join(this.dir, `${name}.${process.pid}.${this.#writes++}.tmp`)
    // A command line may be private.
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
      // On a full disk every attempt would leave one.
      await rm(temporary, { force: true })
      throw error
    }
  }
}
