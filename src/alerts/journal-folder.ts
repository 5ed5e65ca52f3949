/** The folder of the journal: two agents in one folder would undo what the other wrote. */
import { join } from 'node:path'
import { FolderLock, HEARTBEAT_MS, type LockOutcome } from '../core/folder-lock.ts'
import { makeFolder, makeFolderSync } from '../core/make-folder.ts'

export class JournalFolder {
  readonly dir: string
  readonly #lock: FolderLock
  readonly #heartbeatMs: number
  #hasEntered = false
  #isLockedOut = false
  #beatAt = 0

  constructor(dir: string, heartbeatMs = HEARTBEAT_MS) {
    this.dir = dir
    this.#lock = new FolderLock(join(dir, 'alerts.lock'), 0o600)
    this.#heartbeatMs = heartbeatMs
  }

  /** Another agent had the folder at the last attempt. */
  get isLockedOut(): boolean {
    return this.#isLockedOut
  }

  get isBeatDue(): boolean {
    return this.#hasEntered && performance.now() - this.#beatAt >= this.#heartbeatMs
  }

  /** For the start: waits for the disk. Throws when another agent has the folder. */
  enterNow(): void {
    makeFolderSync(this.dir, 0o700)
    this.#take(this.#lock.acquireNow())
  }

  /** Why the file found there was never read; null when it was. Rejects when another agent has the folder. */
  async enter(): Promise<string | null> {
    if (this.#hasEntered) {
      await this.makeAgain()
      return null
    }
    const reason = this.#isLockedOut ? 'another agent wrote it' : 'it could not be read when the agent started'
    await makeFolder(this.dir, 0o700)
    this.#take(await this.#lock.acquire())
    return reason
  }

  /** Renews the lock. Rejects when another agent has taken the folder for abandoned. */
  async showLife(): Promise<void> {
    if (!this.isBeatDue) return
    await this.makeAgain()
  }

  /** Somebody may have removed the folder, or the lock in it. */
  async makeAgain(): Promise<void> {
    if (await this.#lock.heartbeat()) {
      this.#beatAt = performance.now()
      return
    }
    await makeFolder(this.dir, 0o700)
    this.#take(await this.#lock.acquire())
  }

  leave(): Promise<void> {
    return this.#lock.release()
  }

  #take(outcome: LockOutcome): void {
    this.#isLockedOut = !outcome.held
    this.#hasEntered = outcome.held
    this.#beatAt = performance.now()
    if (!outcome.held) throw new Error(`${outcome.owner} already keeps its alerts in ${this.dir}: give each agent its own alerts.dir`)
  }
}
