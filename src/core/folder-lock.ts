/**
 * A lock file that names the process a folder belongs to. It is written aside and then linked, so that nobody finds it empty. A dead owner's lock
 * is never removed, because it may change hands in between: a taker links `NAME.takeover` first, looks again, and renames its own lock over it.
 */
import { randomBytes } from 'node:crypto'
import { hostname, uptime } from 'node:os'
import { rename, rm, utimes, writeFile } from './disk.ts'
import { logLane } from './disk-lane.ts'
import { type Asked, AT_ONCE, atOnce, type FileCalls, IN_TURN, inTurn } from './file-calls.ts'
import { isSameProcess, ownIdentity, type ProcessIdentity } from './process-identity.ts'
import { errorCode } from './system-file.ts'

export const HEARTBEAT_MS = 30_000
/** An owner on another machine or in another container counts as dead after this long without a heartbeat. */
const SILENT_MS = 4 * HEARTBEAT_MS
const TRIES = 20
const PAUSE_MS = 25
const LARGEST_BYTES = 256 * 1024
/** From file systems without hard links. */
const NO_LINKS: readonly string[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

export type LockNote = Readonly<Record<string, unknown>>

export type LockOutcome =
  /** `left`: the note of a dead owner; null: none. */
  { readonly held: true; readonly left: LockNote | null } | { readonly held: false; readonly owner: string }

interface FoundLock {
  /** null: not readable. */
  readonly text: string | null
  readonly changedAt: number
  readonly owner: ProcessIdentity | null
}

export class FolderLock {
  readonly #path: string
  readonly #mode: number
  readonly #proc: string
  #text: string | null = null

  constructor(path: string, mode: number, proc = '/proc') {
    this.#path = path
    this.#mode = mode
    this.#proc = proc
  }

  get held(): boolean {
    return this.#text !== null
  }

  /** Takes the lock when it is free or its owner is dead. Rejects when something else is in its place. */
  acquire(note: LockNote = {}): Promise<LockOutcome> {
    return logLane.run(this.#path, () => inTurn(this.#acquire(IN_TURN, note)))
  }

  /** The same, synchronous, for the start. */
  acquireNow(note: LockNote = {}): LockOutcome {
    return atOnce(this.#acquire(AT_ONCE, note))
  }

  async describe(note: LockNote): Promise<void> {
    if (!(await this.#isStillOurs())) return
    const text = this.#describe(note)
    const fresh = besides(this.#path)
    await writeFile(fresh, text, { flag: 'wx', mode: this.#mode })
    await rename(fresh, this.#path)
    this.#text = text
  }

  /** False when the lock was taken over or removed. */
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
    const found = await logLane.run(this.#path, () => inTurn(look(IN_TURN, this.#path)))
    if (found?.text !== this.#text) this.#text = null
    return this.#text !== null
  }

  #describe(note: LockNote): string {
    return `${JSON.stringify({ ...ownIdentity(this.#proc), ...note })}\n`
  }

  *#acquire(calls: FileCalls, note: LockNote): Asked<LockOutcome> {
    if (this.held) return { held: true, left: null }
    const text = this.#describe(note)
    const mine = besides(this.#path)
    let isBegun = false
    try {
      for (let tries = 1; ; tries++) {
        const found = yield* look(calls, this.#path)
        if (found === null || this.#isDead(found)) {
          if (!isBegun) {
            // On a full disk it is made, and nothing is written.
            isBegun = true
            yield calls.writeFile(mine, text, { flag: 'wx', mode: this.#mode })
          }
          if (found === null ? yield* this.#create(calls, mine, this.#path) : yield* this.#replace(calls, mine, found.text)) {
            this.#text = text
            return { held: true, left: noteIn(found?.text ?? null) }
          }
        }
        // Without hard links, a lock without its newline is still being written.
        else if (found.text?.endsWith('\n') !== false || tries >= TRIES) return { held: false, owner: this.#inWords(found) }
        if (tries >= TRIES) return { held: false, owner: 'another process that is just starting' }
        yield calls.pause(PAUSE_MS)
      }
    } finally {
      if (isBegun) yield calls.rm(mine, { force: true })
    }
  }

  /** False: it exists. */
  *#create(calls: FileCalls, mine: string, path: string): Asked<boolean> {
    try {
      yield calls.link(mine, path)
      return true
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false
      if (!NO_LINKS.includes(errorCode(error))) throw error
    }
    try {
      yield calls.writeFile(path, (yield calls.readFile(mine, 'utf8')) as string, { flag: 'wx', mode: this.#mode })
      return true
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false
      throw error
    }
  }

  /** False: another process was faster. */
  *#replace(calls: FileCalls, mine: string, dead: string | null): Asked<boolean> {
    const door = `${this.#path}.takeover`
    if (!(yield* this.#create(calls, mine, door))) {
      const other = yield* look(calls, door)
      // Its owner was killed during takeover. The pause before our next try is longer than a takeover, so others are done by then.
      if (other !== null && this.#isDead(other)) yield calls.rm(door, { force: true })
      return false
    }
    try {
      const found = yield* look(calls, this.#path)
      if (found === null || found.text !== dead || !this.#isDead(found)) return false
      yield calls.rename(mine, this.#path)
      return true
    } finally {
      yield calls.rm(door, { force: true })
    }
  }

  #isDead({ owner, changedAt }: FoundLock): boolean {
    const isRunning = owner && isSameProcess(owner, this.#proc)
    if (owner && isRunning !== null) return !isRunning
    const bootedAt = Date.now() - uptime() * 1000
    const isBeforeBoot = owner?.host === hostname() && owner.bootId !== ownIdentity(this.#proc).bootId && changedAt < bootedAt
    return isBeforeBoot || Date.now() - changedAt >= SILENT_MS
  }

  #inWords({ owner, text }: FoundLock): string {
    if (owner) return `process ${owner.pid} on ${owner.host}`
    return text === null ? `another user's process (${this.#path} is not readable here)` : `a process without a name in ${this.#path}`
  }
}

function* look(calls: FileCalls, path: string): Asked<FoundLock | null> {
  let file: number
  try {
    file = (yield calls.open(path)) as number
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    if (code === 'EACCES') return { text: null, changedAt: ((yield calls.stat(path)) as { mtimeMs: number }).mtimeMs, owner: null }
    throw code === 'ELOOP' || code === 'ENXIO' ? notALock(path) : error
  }
  try {
    const stats = (yield calls.fstat(file)) as { isFile(): boolean; size: number; mtimeMs: number }
    if (!stats.isFile() || stats.size > LARGEST_BYTES) throw notALock(path)
    const text = (yield calls.readFile(file, 'utf8')) as string
    return { text, changedAt: stats.mtimeMs, owner: ownerIn(text) }
  } finally {
    yield calls.close(file)
  }
}

function notALock(path: string): Error {
  return new Error(`${path} is not a lock of gpuwarden (a folder, a pipe, a link or a large file): remove it`)
}

/** Unique, also across containers. */
function besides(path: string): string {
  return `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
}

/** null: not our lock, from an older version, or still being written. */
function ownerIn(text: string): ProcessIdentity | null {
  const said = noteIn(text) as ProcessIdentity | null
  const isNullOr = (value: unknown, type: string) => value === null || typeof value === type
  const isOwner =
    said !== null &&
    Number.isInteger(said.pid) &&
    said.pid > 0 &&
    typeof said.host === 'string' &&
    isNullOr(said.startTicks, 'number') &&
    isNullOr(said.bootId, 'string') &&
    isNullOr(said.pidNamespace, 'string')
  return isOwner ? said : null
}

function noteIn(text: string | null): LockNote | null {
  try {
    const value = JSON.parse(text ?? '') as unknown
    return typeof value === 'object' && value !== null ? (value as LockNote) : null
  } catch {
    return null
  }
}
