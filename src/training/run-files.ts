/**
 * The runs on disk, two files each: `ID.run.json` is what is known of it, written when that changes; `ID.progress.json`
 * is how far it came, written at checkpoints only, because it must never be ahead of what the log of steps holds.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toJson } from './json-text.ts'
import type { RunRecord } from './run-record.ts'

const RUN = '.run.json'
const PROGRESS = '.progress.json'

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
      if (run !== null && `${run.id}${RUN}` === name && typeof run.startedAt === 'number') runs.push(run)
      else faults.push(`${join(this.dir, name)} does not hold a run`)
    }
    return { runs: runs.sort((a, b) => a.updatedAt - b.updatedAt), faults }
  }

  progressOf(id: string): Promise<unknown> {
    return this.#read(`${id}${PROGRESS}`)
  }

  saveRun(run: RunRecord): Promise<void> {
    return this.#replace(`${run.id}${RUN}`, toJson(run))
  }

  saveProgress(id: string, text: string): Promise<void> {
    return this.#replace(`${id}${PROGRESS}`, text)
  }

  async remove(id: string): Promise<void> {
    await rm(join(this.dir, `${id}${RUN}`), { force: true })
    await rm(join(this.dir, `${id}${PROGRESS}`), { force: true })
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
    await mkdir(this.dir, { recursive: true, mode: 0o750 })
    const temporary = join(this.dir, `${name}.${process.pid}.${this.#writes++}.tmp`)
    // A command line may hold what is nobody else's business.
    await writeFile(temporary, text, { mode: 0o600 })
    await rename(temporary, join(this.dir, name))
  }
}
