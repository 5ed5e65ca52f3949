/** What happens to closed files: compressed one at a time in the background, deleted when too old or too many. */
import { join } from 'node:path'
import { readdir, rm, stat } from '../core/disk.ts'
import type { Log } from '../core/kinds.ts'
import { isPidTaken } from '../core/process-identity.ts'
import { MISTRUST_MS } from '../core/wall-clock.ts'
import { compressFile } from './compress.ts'
import { DELETE_EVERY_MS, type DeletionClock, DeletionGuard } from './deletion-guard.ts'
import { LEFTOVER_SUFFIX, type OwnName, parseFileName } from './file-name.ts'

/** A file that we did not close may still have a writer (such as an SDK): it is left alone until it was quiet this long. */
const QUIET_MS = 3600_000
const DAY_MS = 86_400_000

export interface ArchiveRules extends DeletionClock {
  readonly dir: string
  readonly compress: boolean
  readonly keepDays: number
  readonly keepTotalBytes: number
  readonly log: Log
  readonly active: () => readonly string[]
  /** Whether this process compresses and deletes in the folder. */
  readonly inCharge: () => boolean
}

interface Found {
  readonly name: string
  readonly own: OwnName
  readonly bytes: number
  readonly changedAt: number
}

export class Archive {
  readonly #rules: ArchiveRules
  readonly #closed = new Set<string>()
  readonly #stop = new AbortController()
  readonly #guard: DeletionGuard
  #running: Promise<void> | null = null
  #again = false
  #lastFault: string | null = null
  #next: NodeJS.Timeout | null = null

  constructor(rules: ArchiveRules) {
    this.#rules = rules
    this.#guard = new DeletionGuard(rules)
  }

  /** Adds files that nobody writes any more. */
  add(names: readonly string[]): void {
    for (const name of names) this.#closed.add(name)
  }

  /** Closed by us, not compressed yet. */
  get waiting(): readonly string[] {
    return [...this.#closed]
  }

  /** Checks the folder once; a call during a sweep starts another one after it. */
  sweep(): Promise<void> {
    if (this.#running) {
      this.#again = true
      return this.#running
    }
    this.#running = this.#sweepAll().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async close(): Promise<void> {
    this.#stop.abort()
    if (this.#next) clearTimeout(this.#next)
    await this.#running
  }

  async #sweepAll(): Promise<void> {
    do {
      this.#again = false
      if (!this.#rules.inCharge() || this.#stop.signal.aborted) return
      try {
        await this.#sweepOnce()
      } catch (error) {
        this.#report(error as Error)
      }
    } while (this.#again)
  }

  async #sweepOnce(): Promise<void> {
    const { dir, compress } = this.#rules
    const files = await this.#list()
    if (compress) {
      for (const file of files) {
        if (this.#stop.signal.aborted) return
        if (!file.own.compressed && this.#isClosed(file)) await this.#compress(join(dir, file.name))
        this.#closed.delete(file.name)
      }
    }
    await this.#deleteOld(compress ? await this.#list() : files)
  }

  /** A file that cannot be compressed (usually no space) must not keep the rest from being deleted. */
  async #compress(path: string): Promise<void> {
    try {
      await compressFile(path, this.#stop.signal)
    } catch (error) {
      this.#report(error as Error)
    }
  }

  async #list(): Promise<Found[]> {
    const { dir } = this.#rules
    const found: Found[] = []
    for (const name of await readdir(dir)) {
      if (name.endsWith(LEFTOVER_SUFFIX) && parseFileName(name.slice(0, -LEFTOVER_SUFFIX.length)))
        await rm(join(dir, name), { force: true })
      const own = parseFileName(name)
      const stats = own && (await stat(join(dir, name)).catch(gone))
      if (own && stats?.isFile()) found.push({ name, own, bytes: stats.size, changedAt: stats.mtimeMs })
    }
    return found.sort((a, b) => a.changedAt - b.changedAt || (a.name < b.name ? -1 : 1))
  }

  async #deleteOld(files: readonly Found[]): Promise<void> {
    const { dir, keepDays, keepTotalBytes, log } = this.#rules
    if (!this.#guard.isTimeTrusted(() => this.#lastBefore(files))) return
    const newestAt = Math.min(this.#rules.now(), files.at(-1)?.changedAt ?? 0)
    const total = files.reduce((sum, file) => sum + file.bytes, 0)
    const isTooOld = (file: Found) => keepDays > 0 && newestAt - file.changedAt > keepDays * DAY_MS
    const isTooMuch = keepTotalBytes > 0 && total > keepTotalBytes
    const [file, another] = files.filter((one) => (isTooOld(one) || isTooMuch) && this.#isClosed(one))
    if (!file) return
    const waitMs = this.#guard.waitMs()
    if (waitMs > 0) return this.#sweepIn(waitMs)
    await rm(join(dir, file.name), { force: true })
    this.#guard.deleted()
    this.#closed.delete(file.name)
    log.info(
      { file: file.name, bytes: file.bytes },
      isTooOld(file) ? 'log file deleted: older than log.keep_days' : 'log file deleted: the logs exceeded log.keep_total_mb',
    )
    if (another) this.#sweepIn(DELETE_EVERY_MS)
  }

  #sweepIn(ms: number): void {
    if (this.#next) clearTimeout(this.#next)
    this.#next = setTimeout(() => void this.sweep(), ms).unref()
  }

  /** Of an earlier run: when it last wrote. */
  #lastBefore(files: readonly Found[]): number | null {
    const own = this.#rules.active()
    return files.findLast(({ name }) => !own.includes(name) && !this.#closed.has(name))?.changedAt ?? null
  }

  #isClosed({ name, own, changedAt }: Found): boolean {
    if (this.#rules.active().includes(name)) return false
    if (own.compressed || this.#closed.has(name)) return true
    if (this.#rules.sinceJumpMs() < MISTRUST_MS) return false
    return this.#rules.now() - changedAt >= QUIET_MS && (own.pid === null || own.pid === process.pid || !isPidTaken(own.pid))
  }

  /** Once for each kind of error, not at every sweep. */
  #report(error: Error): void {
    if (this.#stop.signal.aborted || this.#lastFault === error.message) return
    this.#lastFault = error.message
    this.#rules.log.warn(
      { err: error, dir: this.#rules.dir },
      `closed log files could not be compressed or deleted; it will be tried again: ${error.message}`,
    )
  }
}

function gone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
