import { join } from 'node:path'
import { FolderLock, HEARTBEAT_MS, type LockNote } from '../core/folder-lock.ts'
import type { Log } from '../core/kinds.ts'
import { makeFolder } from '../core/make-folder.ts'
import { Archive, type ArchiveRules } from './archive.ts'

const LOCK_NAME = 'gpuwarden.lock'
const SWEEP_MS = 10 * HEARTBEAT_MS
/** A little less than the store's heartbeat, so that a beat is never too early. */
const BEAT_MS = 0.9 * HEARTBEAT_MS

/**
 * The folder of the files. Only the holder of `gpuwarden.lock` compresses and deletes there; a second writer puts its PID into its file
 * names. The lock is advice, not the safety: every file is opened exclusively, so no two writers ever share one.
 */
export class Folder {
  readonly #dir: string
  readonly #log: Log
  readonly #now: () => number
  readonly #active: () => readonly string[]
  readonly #lock: FolderLock
  readonly #run: string
  readonly #archive: Archive
  #lastSweepAt = Number.NEGATIVE_INFINITY
  #beatAt = Number.NEGATIVE_INFINITY
  #shared = false
  #described = ''

  constructor(rules: Omit<ArchiveRules, 'inCharge'>, runId: string) {
    this.#dir = rules.dir
    this.#log = rules.log
    this.#now = rules.now
    this.#active = rules.active
    this.#lock = new FolderLock(join(rules.dir, LOCK_NAME), 0o640)
    this.#run = runId
    this.#archive = new Archive({ ...rules, inCharge: () => this.#lock.held })
  }

  /** Another gpuwarden writes here too. */
  get shared(): boolean {
    return this.#shared
  }

  get held(): boolean {
    return this.#lock.held
  }

  /** Keeps the lock, or takes it when it is free. Throws when the disk does not allow it. */
  async enter(): Promise<void> {
    const now = this.#now()
    if (this.#lock.held && Math.abs(now - this.#beatAt) < BEAT_MS) return
    this.#beatAt = now
    if (this.#lock.held && (await this.#lock.heartbeat())) return
    await makeFolder(this.#dir, 0o750)
    const outcome = await this.#lock.acquire(this.#note([]))
    this.#described = ''
    if (outcome.held) this.#archive.add(filesIn(outcome.left))
    else if (!this.#shared) {
      this.#log.warn(
        { dir: this.#dir, owner: outcome.owner },
        `${outcome.owner} also writes its log to ${this.#dir}: files of this process have _p${process.pid} in their names, and the other one compresses and deletes them; give each its own log.dir`,
      )
    }
    this.#shared = !outcome.held
  }

  /** Names the open files in the lock, so that the next run knows which ones a crash left behind. */
  async describe(): Promise<void> {
    if (this.#beatAt === Number.NEGATIVE_INFINITY) await this.enter()
    if (!this.#lock.held) return
    const files = [...this.#active(), ...this.#archive.waiting]
    const text = files.join()
    if (text === this.#described) return
    await this.#lock.describe(this.#note(files))
    this.#described = text
  }

  /** A file was removed: perhaps the lock too. */
  fileRemoved(): void {
    this.#beatAt = Number.NEGATIVE_INFINITY
  }

  fileClosed(name: string): void {
    this.#archive.add([name])
    void this.#archive.sweep()
  }

  /** From time to time: files of others that have become quiet, and retention. */
  sweepWhenDue(): void {
    if (!this.#lock.held || Math.abs(this.#now() - this.#lastSweepAt) < SWEEP_MS) return
    this.#lastSweepAt = this.#now()
    void this.#archive.sweep()
  }

  async leave(): Promise<void> {
    await this.#archive.close()
    await this.#lock.release()
  }

  /** `files` are open or wait to be compressed: safe to compress once their writer is dead. */
  #note(files: readonly string[]): LockNote {
    return { run: this.#run, files }
  }
}

function filesIn(left: LockNote | null): string[] {
  return Array.isArray(left?.files) ? left.files.filter((file): file is string => typeof file === 'string') : []
}
