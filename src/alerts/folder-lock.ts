/** `alerts.lock`: two agents must not keep their alerts in the same folder, or each would undo what the other wrote. */
import { closeSync, linkSync, openSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, utimesSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

const HEARTBEAT_MS = 30_000
/** A holder that cannot be looked up from here (another host or container) is taken for dead after this long without a sign. */
const SILENT_MS = 4 * HEARTBEAT_MS

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

  /** null: it is ours now. Otherwise who has it, in words. */
  acquire(): string | null {
    const text = `${JSON.stringify({ pid: process.pid, place: here(), started: startOf(process.pid) } satisfies Holder)}\n`
    const mine = `${this.#path}.${process.pid}`
    rmSync(mine, { force: true })
    const file = openSync(mine, 'wx', 0o600)
    try {
      writeSync(file, text)
    } finally {
      closeSync(file)
    }
    try {
      if (!linked(mine, this.#path)) {
        const holder = readHolder(this.#path)
        if (isAlive(this.#path, holder)) return holder ? `process ${holder.pid} on ${holder.place}` : 'another process'
        // Moved away rather than removed: of two that find the same dead holder only one succeeds.
        const dead = `${mine}.dead`
        renameSync(this.#path, dead)
        rmSync(dead, { force: true })
        if (!linked(mine, this.#path)) return 'another process that started at the same moment'
      }
    } finally {
      rmSync(mine, { force: true })
    }
    this.#text = text
    this.#beatAt = Date.now()
    return null
  }

  /** Says from time to time that we live. */
  heartbeat(): void {
    const now = Date.now()
    if (this.#text === null || Math.abs(now - this.#beatAt) < HEARTBEAT_MS) return
    this.#beatAt = now
    if (readText(this.#path) === this.#text) utimesSync(this.#path, new Date(now), new Date(now))
  }

  release(): void {
    if (this.#text !== null && readText(this.#path) === this.#text) rmSync(this.#path, { force: true })
    this.#text = null
  }
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isAlive(path: string, holder: Holder | null): boolean {
  if (holder && holder.place === here()) {
    try {
      process.kill(holder.pid, 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
    }
    return startOf(holder.pid) === holder.started
  }
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && Date.now() - found.mtimeMs < SILENT_MS
}

function readHolder(path: string): Holder | null {
  try {
    const holder = JSON.parse(readText(path) ?? '') as Holder
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
