/**
 * The file where steps wait while no agent accepts them, as in the Python SDK: JSON lines, first `{"run": {…}, "url": …, "format": 1}`,
 * then steps as they are posted, `{"end": {…}}` last. `gpuwarden import FILE` reads it, and so does the next process that reaches the
 * agent. Writes are small and synchronous: they must work while the process ends.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { formatBytes } from '../core/format.ts'

const FILE_LIMIT_BYTES = 64 * 1024 * 1024
const FOLDER_LIMIT_BYTES = 1024 * 1024 * 1024
const HEAD_BYTES = 256 * 1024
const SUFFIX = '.jsonl'
const NEW_LINE = 10

export interface SpoolRead {
  readonly lines: readonly string[]
  /** What to pass to `advance` once they are delivered. */
  readonly next: number
}

/** null: GPUWARDEN_SPOOL=off, nothing is written to disk. */
export function spoolFolder(env: NodeJS.ProcessEnv): string | null {
  const folder = env.GPUWARDEN_SPOOL || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'gpuwarden', 'spool')
  return folder.toLowerCase() === 'off' ? null : folder
}

export class StepSpool {
  readonly path: string | null
  readonly #head: Buffer
  readonly #limit: number
  #file: number | null = null
  #size = 0
  #readFrom = 0

  constructor(folder: string | null, name: string, head: object, limitBytes = FILE_LIMIT_BYTES) {
    this.path = folder === null ? null : join(folder, name + SUFFIX)
    this.#head = Buffer.from(`${JSON.stringify(head)}\n`)
    this.#limit = limitBytes
  }

  get isEmpty(): boolean {
    return this.#file === null || this.#readFrom >= this.#size
  }

  /** How many were kept, and why not all. A full disk is no reason to stop a training. */
  append(lines: readonly string[]): { readonly kept: number; readonly reason: string | null } {
    if (this.path === null) return { kept: 0, reason: 'there is no spool (GPUWARDEN_SPOOL=off)' }
    try {
      const file = this.#opened(this.path)
      const before = this.#size
      const fitting: Buffer[] = []
      let room = this.#limit - before
      for (const line of lines) {
        const bytes = Buffer.from(`${line}\n`)
        room -= bytes.length
        if (room < 0) break
        fitting.push(bytes)
      }
      const reason = this.#write(file, Buffer.concat(fitting))
      if (reason !== null) return { kept: linesWithin(fitting, this.#size - before), reason }
      return { kept: fitting.length, reason: fitting.length === lines.length ? null : `the spool has reached ${formatBytes(this.#limit)}` }
    } catch (error) {
      return { kept: 0, reason: (error as Error).message }
    }
  }

  read(mostLines: number, mostBytes = 1024 * 1024): SpoolRead {
    return this.#file === null ? { lines: [], next: 0 } : readWholeLines(this.#file, this.#readFrom, mostLines, mostBytes)
  }

  /** Everything up to `next` is delivered; a spool delivered as a whole is removed. */
  advance(next: number): void {
    this.#readFrom = next
    if (!this.isEmpty || this.path === null) return
    rmSync(this.path, { force: true })
    this.close()
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
    this.#size = 0
    this.#readFrom = 0
  }

  #opened(path: string): number {
    if (this.#file !== null && fstatSync(this.#file).nlink > 0) return this.#file
    // Somebody removed it, perhaps after importing it: what is not delivered yet goes into a new one.
    const rest = this.#file === null ? [] : this.read(Number.POSITIVE_INFINITY, FILE_LIMIT_BYTES).lines
    this.close()
    const file = openSpool(path)
    try {
      this.#size = wholeBytes(file)
      if (this.#size === 0) {
        const reason = this.#write(file, Buffer.concat([this.#head, ...rest.map((line) => Buffer.from(`${line}\n`))]))
        if (reason !== null) throw new Error(reason)
      }
    } catch (error) {
      closeSync(file)
      throw error
    }
    // The head is for other readers: this process announces its run itself.
    this.#readFrom = readWholeLines(file, 0, 1, HEAD_BYTES).next
    this.#file = file
    return file
  }

  /** Why not all of it could be written. Whole lines stay; half a line must not: whatever came next would be glued to it. */
  #write(file: number, data: Buffer): string | null {
    let written = 0
    try {
      while (written < data.length) written += writeSync(file, data, written)
      this.#size += written
      return null
    } catch (error) {
      const whole = written === 0 ? 0 : data.lastIndexOf(NEW_LINE, written - 1) + 1
      ftruncateSync(file, this.#size + whole)
      this.#size += whole
      return (error as Error).message
    }
  }
}

function openSpool(path: string): number {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const bytes = readdirSync(folder).reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
  if (bytes > FOLDER_LIMIT_BYTES)
    throw new Error(`the spool folder holds more than ${formatBytes(FOLDER_LIMIT_BYTES)}; run gpuwarden import on it`)
  return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o600)
}

/** The size of a file without a torn line at its end, which is cut off: whatever came next would be glued to it. */
function wholeBytes(file: number): number {
  const bytes = Buffer.alloc(fstatSync(file).size)
  const size = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0)).lastIndexOf(NEW_LINE) + 1
  if (size < bytes.length) ftruncateSync(file, size)
  return size
}

/** Whole lines from `offset`, and the offset behind them. A torn line at the end is left out; one longer than `mostBytes` comes alone. */
export function readWholeLines(file: number, offset: number, mostLines: number, mostBytes: number): SpoolRead {
  const left = Math.max(0, fstatSync(file).size - offset)
  const bytes = Buffer.alloc(Math.min(mostBytes, left))
  const length = readSync(file, bytes, 0, bytes.length, offset)
  if (length < left && !bytes.subarray(0, length).includes(NEW_LINE)) return readWholeLines(file, offset, 1, left)
  const lines: string[] = []
  let from = 0
  while (lines.length < mostLines) {
    const end = bytes.subarray(0, length).indexOf(NEW_LINE, from)
    if (end === -1) break
    lines.push(bytes.toString('utf8', from, end))
    from = end + 1
  }
  return { lines, next: offset + from }
}

function linesWithin(chunks: readonly Buffer[], written: number): number {
  let left = written
  let count = 0
  for (const { length } of chunks) {
    left -= length
    if (left < 0) break
    count++
  }
  return count
}
