/** The kernel's log, read once for all sources of this process; only what comes after the start. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import type { SourceEnv, SourceTick } from '../core/source-contract.ts'

/** How many bytes were read, or what failed as a negative number. */
export type ReadFile = (file: number, into: Uint8Array) => number

export interface KernelLines<Found> {
  /** What every line of interest contains. */
  readonly mark: string
  /** null: a line about something else. */
  readonly parse: (line: string) => Found | null
  /** What follows if the log cannot be read: `XIDs come from the driver only`. */
  readonly without: string
  /** A faster way to read than Node's, which throws when there is nothing new. */
  readonly readFile?: ReadFile
}

const RECORD_BYTES = 8192
const MAX_RECORDS_PER_READ = 256
const MAX_RECORDS_AT_OPEN = 200_000
const MAX_WAITING = 256
const INTERVAL_MS = 900

const logs = new Map<string, KernelLog>()

/** The lines of one kind, for one source. */
export class KernelLogFollower<Found> {
  readonly #env: SourceEnv
  readonly #lines: KernelLines<Found>
  #log: KernelLog | null = null
  #waiting: Found[] = []

  constructor(env: SourceEnv, lines: KernelLines<Found>) {
    this.#env = env
    this.#lines = lines
    const path = join(env.root, 'dev/kmsg')
    try {
      this.#log = logs.get(path) ?? new KernelLog(path, lines.readFile ?? readWithNode)
      this.#log.join(this, lines.readFile)
    } catch (fault) {
      const { code, message } = fault as NodeJS.ErrnoException
      if (code === undefined) throw fault
      env.log('info', `the kernel log ${path} cannot be read: ${lines.without}`, { reason: message })
    }
  }

  /** What came since the last call; bounded, the rest comes with the next one. A log that fails is reported once. */
  read({ monotonicMs }: SourceTick): readonly Found[] {
    const fault = this.#log?.read(monotonicMs) ?? null
    if (fault !== null) {
      this.#env.log('warn', `the kernel log can no longer be read: ${this.#lines.without}`, { reason: String(fault) })
      this.close()
    }
    const found = this.#waiting
    if (found.length > 0) this.#waiting = []
    return found
  }

  take(text: string): void {
    if (!text.includes(this.#lines.mark)) return
    for (const line of text.split('\n')) {
      const found = line.includes(this.#lines.mark) ? this.#lines.parse(line) : null
      if (found !== null && this.#waiting.length < MAX_WAITING) this.#waiting.push(found)
    }
  }

  close(): void {
    this.#log?.leave(this)
    this.#log = null
  }
}

class KernelLog {
  readonly #path: string
  readonly #file: number
  #readFile: ReadFile
  readonly #followers = new Set<KernelLogFollower<unknown>>()
  /** null: a device that gives one record per read; else where to go on in a regular file. */
  #position: number | null
  readonly #bytes = Buffer.alloc(RECORD_BYTES)
  #rest = ''
  #readMs = Number.NEGATIVE_INFINITY
  #fault: unknown = null

  constructor(path: string, readFile: ReadFile) {
    this.#path = path
    this.#readFile = readFile
    this.#file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(this.#file)
    this.#position = stat.isFile() ? stat.size : null
    try {
      if (this.#position === null) for (let i = 0; i < MAX_RECORDS_AT_OPEN && this.#nextRecord() !== null; i++);
    } catch (fault) {
      closeSync(this.#file)
      throw fault
    }
    logs.set(path, this)
  }

  join(follower: KernelLogFollower<unknown>, readFile: ReadFile | undefined): void {
    this.#followers.add(follower)
    this.#readFile = readFile ?? this.#readFile
  }

  leave(follower: KernelLogFollower<unknown>): void {
    if (!this.#followers.delete(follower) || this.#followers.size > 0) return
    closeSync(this.#file)
    if (logs.get(this.#path) === this) logs.delete(this.#path)
  }

  /** Gives every follower what is new, if it is time to look; returns why the log failed. */
  read(nowMs: number): unknown {
    if (this.#fault !== null || Math.abs(nowMs - this.#readMs) < INTERVAL_MS) return this.#fault
    this.#readMs = nowMs
    try {
      for (let i = 0; i < MAX_RECORDS_PER_READ; i++) {
        const text = this.#position === null ? this.#nextRecord() : this.#nextLines(this.#position)
        if (text === null) break
        for (const follower of this.#followers) follower.take(text)
      }
    } catch (fault) {
      this.#fault = fault
    }
    return this.#fault
  }

  /** One record; '' for one that was overwritten before it was read; null when there is none. */
  #nextRecord(): string | null {
    const length = this.#readFile(this.#file, this.#bytes)
    if (length >= 0) return length === 0 ? null : this.#bytes.toString('latin1', 0, length)
    const code = getSystemErrorName(length)
    if (code === 'EPIPE' || code === 'EINVAL') return ''
    if (code === 'EAGAIN') return null
    throw Object.assign(new Error(`${code}: read`), { code })
  }

  /** Whole lines of what was appended. */
  #nextLines(position: number): string | null {
    const length = readSync(this.#file, this.#bytes, 0, RECORD_BYTES, position)
    if (length === 0) return null
    this.#position = position + length
    const text = this.#rest + this.#bytes.toString('latin1', 0, length)
    const end = text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end).slice(-RECORD_BYTES)
    return text.slice(0, end)
  }
}

function readWithNode(file: number, into: Uint8Array): number {
  try {
    return readSync(file, into)
  } catch (fault) {
    const { errno } = fault as NodeJS.ErrnoException
    if (errno === undefined) throw fault
    return errno
  }
}
