/**
 * `gpuwarden.lock` says who writes in a folder. Its holder alone compresses and deletes there; a second writer is allowed,
 * but puts its PID into its file names and leaves housekeeping to the holder. The lock is advice, not the safety:
 * every file is opened exclusively, so that no two writers ever share one.
 */
import { hostname } from 'node:os'
import { join } from 'node:path'
import { open, readFile, readlink, rename, rm, stat, utimes } from '../core/disk.ts'
import { makeFolder } from '../core/make-folder.ts'

export const LOCK_NAME = 'gpuwarden.lock'
export const HEARTBEAT_MS = 30_000
/** A holder that cannot be looked up from here (another host or container) is taken for dead after this long without a heartbeat. */
const SILENT_MS = 3 * HEARTBEAT_MS

export interface LockHolder {
  readonly pid: number
  /** Where this PID means something: host and PID namespace. */
  readonly place: string
  /** Start of the process, as the kernel counts it: tells a reused PID apart. */
  readonly started: string | null
  readonly run: string
  /** Files being written or waiting to be compressed: safe to compress once their writer is dead. */
  readonly files: readonly string[]
}

export type LockOutcome =
  | { readonly held: true; readonly leftFiles: readonly string[] }
  | { readonly held: false; readonly holder: LockHolder | null }

export class DirLock {
  readonly #dir: string
  readonly #path: string
  readonly #run: string
  #text: string | null = null

  constructor(dir: string, run: string) {
    this.#dir = dir
    this.#path = join(dir, LOCK_NAME)
    this.#run = run
  }

  get held(): boolean {
    return this.#text !== null
  }

  /** Takes the lock when it is free or its holder is dead. `leftFiles` are those the dead one was writing. */
  async acquire(): Promise<LockOutcome> {
    if (this.held) return { held: true, leftFiles: [] }
    await makeFolder(this.#dir, 0o750)
    const text = await this.#describe([])
    if (await createExclusively(this.#path, text)) {
      this.#text = text
      return { held: true, leftFiles: [] }
    }
    const holder = await this.#readHolder()
    if (await isAlive(this.#path, holder)) return { held: false, holder }
    await rm(this.#path, { force: true })
    if (!(await createExclusively(this.#path, text))) return { held: false, holder: await this.#readHolder() }
    this.#text = text
    return { held: true, leftFiles: holder?.files ?? [] }
  }

  /** Writes down which files are being written. */
  async describe(files: readonly string[]): Promise<void> {
    if (!(await this.#isStillOurs())) return
    const text = await this.#describe(files)
    const fresh = `${this.#path}.${process.pid}`
    await rm(fresh, { force: true })
    if (!(await createExclusively(fresh, text))) throw new Error(`${fresh} was made by somebody else at this moment: remove it`)
    await rename(fresh, this.#path)
    this.#text = text
  }

  /** Says that we live; false when the lock was taken from us or removed. */
  async heartbeat(): Promise<boolean> {
    if (!(await this.#isStillOurs())) return false
    const now = new Date()
    await utimes(this.#path, now, now)
    return true
  }

  async release(): Promise<void> {
    if (await this.#isStillOurs()) await rm(this.#path, { force: true })
    this.#text = null
  }

  async #isStillOurs(): Promise<boolean> {
    if (this.#text === null) return false
    const found = await readFile(this.#path, 'utf8').catch(absent)
    if (found !== this.#text) this.#text = null
    return this.#text !== null
  }

  async #describe(files: readonly string[]): Promise<string> {
    const holder: LockHolder = { pid: process.pid, place: await here(), started: await startOf(process.pid), run: this.#run, files }
    return `${JSON.stringify(holder)}\n`
  }

  async #readHolder(): Promise<LockHolder | null> {
    const text = await readFile(this.#path, 'utf8').catch(absent)
    return text === null ? null : parseHolder(text)
  }
}

/** null: not a lock of ours, or one torn by a crash. */
export function parseHolder(text: string): LockHolder | null {
  try {
    const { pid, place, started, run, files } = JSON.parse(text) as Record<string, unknown>
    if (typeof pid !== 'number' || typeof place !== 'string') return null
    const names = Array.isArray(files) ? files.filter((file): file is string => typeof file === 'string') : []
    return { pid, place, started: typeof started === 'string' ? started : null, run: typeof run === 'string' ? run : '', files: names }
  } catch {
    return null
  }
}

export function isPidAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function isAlive(path: string, holder: LockHolder | null): Promise<boolean> {
  if (holder && holder.place === (await here())) return isPidAlive(holder.pid) && (await startOf(holder.pid)) === holder.started
  const found = await stat(path).catch(absent)
  return found !== null && Date.now() - found.mtimeMs < SILENT_MS
}

async function createExclusively(path: string, text: string): Promise<boolean> {
  const handle = await open(path, 'wx', 0o640).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return null
    throw error
  })
  if (!handle) return false
  try {
    await handle.writeFile(text)
    return true
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

async function here(): Promise<string> {
  return `${hostname()} ${(await readlink('/proc/self/ns/pid').catch(absent)) ?? ''}`.trim()
}

/** Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses. null where there is no /proc. */
async function startOf(pid: number): Promise<string | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(absent)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ESRCH' || error.code === 'EACCES') return null
  throw error
}
