/**
 * What must survive a kill: a small table of keys and values, kept in memory and, change by change, in one append-only file.
 *
 * One journal rather than a file per message, because what is decided together has to become durable together: that a trouble fires,
 * that a channel has to be told, that it was told. With files of their own a kill between two of them would lose a message or send it
 * twice; here they are one line, which has a checksum and counts as a whole or not at all. The file is written anew, beside the old one
 * and renamed, when most of it is history, at the start, and after a fault.
 */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Log } from '../kinds.ts'
import { FolderLock } from './folder-lock.ts'
import { type Change, decodeJournal, encodeLine } from './journal-line.ts'

const FILE = 'alerts.journal'
const FORMAT = 1
const REWRITE_BYTES = 256 * 1024
const CORRUPT_KEPT = 5

export interface JournalOptions {
  /** null: nothing is kept on disk. */
  readonly dir: string | null
  readonly log: Log
  readonly now: () => number
  /** How soon a disk that failed is tried again. */
  readonly retryMs?: number
}

export class Journal {
  readonly #options: JournalOptions
  readonly #path: string | null
  readonly #lock: FolderLock | null
  #table = new Map<string, unknown>()
  #dirty = new Set<string>()
  #file: FileHandle | null = null
  #fileBytes = 0
  #liveBytes = 0
  #writing: Promise<boolean> | null = null
  #next: Promise<boolean> | null = null
  #fault: string | null = null
  #faultAt = 0
  #corrupt: string[] = []
  #hasEntered = false
  #isLockedOut = false
  #closed = false

  constructor(options: JournalOptions) {
    this.#options = options
    this.#path = options.dir === null ? null : join(options.dir, FILE)
    this.#lock = options.dir === null ? null : new FolderLock(options.dir)
    if (options.dir !== null) this.#load(options.dir)
  }

  /** Why nothing is kept on disk at present; null when it is. */
  get fault(): string | null {
    return this.#fault
  }

  /** Files that were set aside because they could not be read in full. */
  get corrupt(): readonly string[] {
    return this.#corrupt
  }

  entries(prefix: string): [string, unknown][] {
    return [...this.#table].filter(([key]) => key.startsWith(prefix))
  }

  get(key: string): unknown {
    return this.#table.get(key)
  }

  /** The value is written as it is at the next commit, so an object may be changed after it was set if it is set again. */
  set(key: string, value: unknown): void {
    this.#table.set(key, value)
    this.#dirty.add(key)
  }

  delete(key: string): void {
    if (this.#table.delete(key)) this.#dirty.add(key)
  }

  get isDirty(): boolean {
    return this.#dirty.size > 0
  }

  /** True when everything set before is on the disk; false when the disk does not take it (see `fault`), or there is none. */
  commit(): Promise<boolean> {
    if (this.#writing) {
      // What was set while a write is under way needs one more, and one is enough for all who wait.
      this.#next ??= this.#writing.then(() => {
        this.#next = null
        return this.#start()
      })
      return this.#next
    }
    return this.#start()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    await this.commit()
    this.#closed = true
    await this.#file?.close()
    this.#file = null
    this.#lock?.release()
  }

  #start(): Promise<boolean> {
    this.#writing = this.#write().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #write(): Promise<boolean> {
    if (this.#path === null || this.#closed || this.#isLockedOut) return false
    if (this.#dirty.size === 0 && this.#fault === null && this.#file !== null) return true
    if (this.#fault !== null && performance.now() - this.#faultAt < (this.#options.retryMs ?? 5000)) return false
    try {
      this.#lock?.heartbeat()
      if (this.#file === null || this.#fault !== null || this.#fileBytes > Math.max(REWRITE_BYTES, 3 * this.#liveBytes))
        await this.#rewrite(this.#path)
      else await this.#append(this.#file)
      this.#succeeded()
      return true
    } catch (error) {
      this.#failed(error as Error)
      return false
    }
  }

  async #append(file: FileHandle): Promise<void> {
    const changes: Change[] = []
    for (const key of this.#dirty) changes.push(this.#table.has(key) ? [key, this.#table.get(key)] : [key])
    this.#dirty.clear()
    const line = Buffer.from(encodeLine(changes))
    // FileHandle.write may take less than it was given.
    for (let done = 0; done < line.length; ) done += (await file.write(line, done)).bytesWritten
    await file.datasync()
    this.#fileBytes += line.length
  }

  /** One entry a line, so that damage costs one entry. The rename is what makes it count; the folder's fsync makes that last. */
  async #rewrite(path: string): Promise<void> {
    if (!this.#hasEntered) this.#enterLate(this.#options.dir ?? '.')
    const lines = [encodeLine([['format', FORMAT]])]
    for (const [key, value] of this.#table) lines.push(encodeLine([[key, value]]))
    this.#dirty.clear()
    const bytes = Buffer.from(lines.join(''))
    const fresh = `${path}.tmp`
    const file = await open(fresh, 'w', 0o600)
    try {
      for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done)).bytesWritten
      await file.sync()
      await rename(fresh, path)
    } catch (error) {
      await file.close()
      throw error
    }
    const old = this.#file
    this.#file = file
    this.#fileBytes = bytes.length
    this.#liveBytes = bytes.length
    await old?.close()
    const folder = await open(this.#options.dir ?? '.', 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }

  #load(dir: string): void {
    try {
      this.#enter(dir)
      const text = this.#read(dir)
      if (text === null) return
      const { entries, damaged } = decodeJournal(text)
      const format = entries.get('format')
      if (format === FORMAT) this.#table = entries
      this.#table.delete('format')
      if (format !== FORMAT) this.#setAside(dir, format === undefined ? 'it is not a journal of alerts' : `its format is ${String(format)}`)
      else if (damaged > 0) this.#setAside(dir, `${damaged} of its lines cannot be read`)
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** The folder could not be used at the start; what is found there now is from before and was never read. */
  #enterLate(dir: string): void {
    this.#enter(dir)
    if (existsSync(join(dir, FILE))) this.#setAside(dir, 'it could not be read when the agent started')
  }

  #enter(dir: string): void {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    const holder = this.#lock?.acquire() ?? null
    if (holder !== null) {
      this.#isLockedOut = true
      throw new Error(`${holder} keeps its alerts in ${dir} already: give each agent its own alerts.dir`)
    }
    this.#hasEntered = true
  }

  #read(dir: string): string | null {
    try {
      return readFileSync(join(dir, FILE), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#setAside(dir, (error as Error).message)
      return null
    }
  }

  /** The damaged file keeps its place until the next commit has written the readable part anew: a kill in between loses nothing. */
  #setAside(dir: string, reason: string): void {
    const name = `alerts-${this.#options.now()}.corrupt`
    try {
      linkSync(join(dir, FILE), join(dir, name))
    } catch {
      renameSync(join(dir, FILE), join(dir, name))
    }
    this.#corrupt.push(name)
    this.#options.log.error(
      { file: join(dir, name), kept: this.#table.size },
      `the journal of the alerts is damaged: ${reason}; it is set aside as ${name}, and ${this.#table.size} entries were kept`,
    )
    const old = readdirSync(dir)
      .filter((found) => /^alerts-\d+\.corrupt$/.test(found))
      .sort()
    for (const found of old.slice(0, -CORRUPT_KEPT)) rmSync(join(dir, found), { force: true, recursive: true })
  }

  #failed(error: Error): void {
    this.#faultAt = performance.now()
    if (this.#fault === null)
      this.#options.log.error(
        { err: error, dir: this.#options.dir },
        `alerts cannot be kept on disk: ${error.message}; they are delivered from memory, and a restart would lose those that wait`,
      )
    this.#fault = error.message
  }

  #succeeded(): void {
    if (this.#fault === null) return
    this.#options.log.info({ dir: this.#options.dir, file: basename(this.#path ?? '') }, 'alerts are kept on disk again')
    this.#fault = null
  }
}
