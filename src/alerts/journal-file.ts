/** The file of the journal. append() hands a line to the system, so it survives a kill; sync() makes it survive a power cut. */
import { close, fdatasync, fstat, open, rename, write } from 'node:fs'
import { promisify } from 'node:util'
import { absent, IN_PLACE_MS, isSameFile, open as openInTurn, readFile, stat } from '../core/disk.ts'
import { journalLane, logLane } from '../core/disk-lane.ts'
import { readOwnFile } from '../core/system-file.ts'

const calls = {
  open: promisify(open),
  write: promisify(write),
  rename: promisify(rename),
  datasync: promisify(fdatasync),
  close: promisify(close),
  fstat: promisify(fstat),
}

export class JournalFile {
  readonly #dir: string
  readonly #path: string
  readonly #lookEveryMs: number
  #lookedMs = Number.NEGATIVE_INFINITY
  #file: number | null = null
  #bytes = 0
  /** Lines that wait for their turn: they are written together. */
  #waiting: Buffer[] = []
  #isTurnAsked = false
  #handed: Promise<void> = Promise.resolve()
  /** Appended while the file is rewritten: the new file needs it too. */
  #meanwhile: Buffer[] | null = null

  /** `lookEveryMs`: how often the open file is compared with its path. */
  constructor(dir: string, path: string, lookEveryMs = IN_PLACE_MS) {
    this.#dir = dir
    this.#path = path
    this.#lookEveryMs = lookEveryMs
  }

  get isOpen(): boolean {
    return this.#file !== null
  }

  get bytes(): number {
    return this.#bytes
  }

  get isLookDue(): boolean {
    return this.isOpen && performance.now() - this.#lookedMs >= this.#lookEveryMs
  }

  /** For the start: waits for the disk. Null: there is no such file. */
  readNow(): string | null {
    try {
      return readOwnFile(this.#path)
    } catch (error) {
      return nullWhenAbsent(error as NodeJS.ErrnoException)
    }
  }

  /** Null: there is no such file, or it cannot be read now. */
  tryReadNow(): string | null {
    try {
      return this.readNow()
    } catch {
      return null
    }
  }

  /** Null: there is no such file. */
  read(): Promise<string | null> {
    return readFile(this.#path, 'utf8').catch(nullWhenAbsent)
  }

  /** Resolves when the system has it; lines are in the file in the order of these calls. */
  append(line: string): Promise<void> {
    if (this.#file === null) return Promise.reject(new Error('the journal is not open'))
    const bytes = Buffer.from(line)
    this.#waiting.push(bytes)
    this.#meanwhile?.push(bytes)
    if (!this.#isTurnAsked) {
      this.#isTurnAsked = true
      this.#handed = journalLane.run(this.#path, () => this.#hand())
    }
    return this.#handed
  }

  handed(): Promise<void> {
    return this.#handed
  }

  async sync(): Promise<void> {
    const file = this.#file
    if (file !== null) await logLane.run(this.#path, () => calls.datasync(file))
  }

  /** False when somebody removed, moved or replaced it. */
  async isInPlace(): Promise<boolean> {
    this.#lookedMs = performance.now()
    const file = this.#file
    if (file === null) return false
    const own = await logLane.run(this.#path, () => calls.fstat(file))
    // It may have been replaced by ourselves in the meantime.
    return file !== this.#file || isSameFile(own, await stat(this.#path).catch(absent))
  }

  /** The old file stays in use until the new one is complete, with what was appended in the meantime; the rename makes it count. */
  async replace(content: string): Promise<void> {
    const bytes = Buffer.from(content)
    this.#meanwhile = []
    try {
      const fresh = await openInTurn(this.#fresh, 'w', 0o600)
      try {
        for (let done = 0; done < bytes.length; ) done += (await fresh.write(bytes, done, bytes.length - done)).bytesWritten
        await fresh.sync()
      } finally {
        await fresh.close()
      }
      // In the lane of the lines: no line is on its way to the old file while the new one takes its place.
      await journalLane.run(this.#path, () => this.#exchange(bytes.length))
    } finally {
      this.#meanwhile = null
    }
    const folder = await openInTurn(this.#dir, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = null
    if (file !== null) await journalLane.run(this.#path, () => calls.close(file))
  }

  get #fresh(): string {
    return `${this.#path}.tmp`
  }

  async #hand(): Promise<void> {
    const file = this.#file
    const lines = this.#waiting
    this.#waiting = []
    this.#isTurnAsked = false
    if (file === null) throw new Error('the journal was closed')
    const bytes = Buffer.concat(lines)
    await writeAll(file, bytes)
    this.#bytes += bytes.length
  }

  async #exchange(bytes: number): Promise<void> {
    const file = await calls.open(this.#fresh, 'a', 0o600)
    const rest = Buffer.concat(this.#meanwhile ?? [])
    // Lines that still wait are in `rest`; everything after this goes to the new file only.
    this.#waiting = []
    this.#meanwhile = null
    try {
      await writeAll(file, rest)
      await calls.rename(this.#fresh, this.#path)
    } catch (error) {
      await calls.close(file)
      throw error
    }
    const old = this.#file
    this.#file = file
    this.#bytes = bytes + rest.length
    if (old !== null) await calls.close(old)
  }
}

/** A write may take less than it was given. */
async function writeAll(file: number, bytes: Buffer): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await calls.write(file, bytes, done, bytes.length - done, null)).bytesWritten
}

/** Rejects with DiskStuck when the work of both lanes takes longer. */
export function patiently<T>(work: () => Promise<T>, limitMs: number): Promise<T> {
  return logLane.patiently(() => journalLane.patiently(work, limitMs), limitMs)
}

function nullWhenAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
