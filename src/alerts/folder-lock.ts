/** `alerts.lock`: two agents must not keep their alerts in the same folder, or each would undo what the other wrote. */
import { linkSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { link, readFile, rename, rm, stat, utimes, writeFile } from '../core/disk.ts'

const HEARTBEAT_MS = 30_000
/** A holder that cannot be looked up from here (another host or container) is taken for dead after this long without a sign. */
const SILENT_MS = 4 * HEARTBEAT_MS
const AT_ONCE = 'another process that started at the same moment'

interface Holder {
  readonly pid: number
  /** Where this PID means something: host and PID namespace. */
  readonly place: string
  /** Start of the process as the kernel counts it: tells a reused PID apart. */
  readonly started: string | null
}

export class FolderLock {
  readonly #path: string
  #text: string | null = null
  #beatAt = 0

  constructor(dir: string) {
    this.#path = join(dir, 'alerts.lock')
  }

  /** null: it is ours now. Otherwise who has it, in words. It waits for the disk: only for the start. */
  acquireNow(): string | null {
    const text = ownText()
    const mine = `${this.#path}.${process.pid}`
    rmSync(mine, { force: true })
    writeFileSync(mine, text, { flag: 'wx', mode: 0o600 })
    try {
      if (!linked(() => linkSync(mine, this.#path))) {
        const found = readText(this.#path)
        const changedAt = statSync(this.#path, { throwIfNoEntry: false })?.mtimeMs ?? null
        if (isAlive(holderIn(found), changedAt)) return inWords(holderIn(found))
        // Moved away rather than removed: of two that find the same dead holder only one succeeds.
        const dead = `${mine}.dead`
        renameSync(this.#path, dead)
        rmSync(dead, { force: true })
        if (!linked(() => linkSync(mine, this.#path))) return AT_ONCE
      }
    } finally {
      rmSync(mine, { force: true })
    }
    this.#taken(text)
    return null
  }

  /** The same while the agent runs. */
  async acquire(): Promise<string | null> {
    const text = ownText()
    const mine = `${this.#path}.${process.pid}`
    await rm(mine, { force: true })
    await writeFile(mine, text, { flag: 'wx', mode: 0o600 })
    const take = () => link(mine, this.#path).then(() => true, isThere)
    try {
      if (!(await take())) {
        const found = await readFile(this.#path, 'utf8').catch(() => null)
        const changedAt = await stat(this.#path).then(
          ({ mtimeMs }) => mtimeMs,
          () => null,
        )
        if (isAlive(holderIn(found), changedAt)) return inWords(holderIn(found))
        const dead = `${mine}.dead`
        await rename(this.#path, dead)
        await rm(dead, { force: true })
        if (!(await take())) return AT_ONCE
      }
    } finally {
      await rm(mine, { force: true })
    }
    this.#taken(text)
    return null
  }

  /** Says from time to time that we live. */
  async heartbeat(): Promise<void> {
    const now = Date.now()
    if (this.#text === null || Math.abs(now - this.#beatAt) < HEARTBEAT_MS) return
    this.#beatAt = now
    if (await this.#isOurs()) await utimes(this.#path, new Date(now), new Date(now))
  }

  async release(): Promise<void> {
    if (await this.#isOurs()) await rm(this.#path, { force: true })
    this.#text = null
  }

  #taken(text: string): void {
    this.#text = text
    this.#beatAt = Date.now()
  }

  async #isOurs(): Promise<boolean> {
    return this.#text !== null && (await readFile(this.#path, 'utf8').catch(() => null)) === this.#text
  }
}

function ownText(): string {
  return `${JSON.stringify({ pid: process.pid, place: here(), started: startOf(process.pid) } satisfies Holder)}\n`
}

function inWords(holder: Holder | null): string {
  return holder ? `process ${holder.pid} on ${holder.place}` : 'another process'
}

function linked(call: () => void): boolean {
  try {
    call()
    return true
  } catch (error) {
    return isThere(error)
  }
}

function isThere(error: unknown): false {
  if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
  throw error
}

/** `changedAt`: of its file; null when that is gone. */
function isAlive(holder: Holder | null, changedAt: number | null): boolean {
  if (holder && holder.place === here()) {
    try {
      process.kill(holder.pid, 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
    }
    return startOf(holder.pid) === holder.started
  }
  return changedAt !== null && Date.now() - changedAt < SILENT_MS
}

function holderIn(text: string | null): Holder | null {
  try {
    const holder = JSON.parse(text ?? '') as Holder
    return typeof holder.pid === 'number' && typeof holder.place === 'string' ? holder : null
  } catch {
    return null
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function here(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/** Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses. null where there is no /proc. */
function startOf(pid: number): string | null {
  const text = readText(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null
}
