import type { StreamName } from './file-name.ts'
import { LineQueue } from './line-queue.ts'
import { LogFile } from './log-file.ts'

/** Larger batches go in several writes, so that a retry repeats little. */
const WRITE_BYTES = 1024 * 1024

export interface StreamRules {
  readonly dir: string
  readonly rotateBytes: number
  readonly rotateMs: number
  readonly now: () => number
  /** PID for the file name when the folder is shared; null when it is ours. */
  readonly namePid: () => number | null
  /** A file was closed and may be compressed. */
  readonly closed: (stream: LogStream, name: string) => void
  /** A file vanished with these lines in it. */
  readonly removed: (stream: LogStream, file: LogFile) => void
}

/** The same file can continue once there is space; after any other error a new file is safer. */
function isDiskFull(fault: NodeJS.ErrnoException): boolean {
  return fault.code === 'ENOSPC' || fault.code === 'EDQUOT'
}

/** One kind of line: what waits for the disk, and its file. */
export class LogStream {
  readonly name: StreamName
  readonly queue = new LineQueue()
  readonly #rules: StreamRules
  #file: LogFile | null = null
  #inFlightLines = 0
  #inFlightBytes = 0
  #filesOpened = 0
  #bytesWritten = 0

  constructor(name: StreamName, rules: StreamRules) {
    this.name = name
    this.#rules = rules
  }

  get currentFile(): string | null {
    return this.#file?.name ?? null
  }

  get filesOpened(): number {
    return this.#filesOpened
  }

  get bytesWritten(): number {
    return this.#bytesWritten
  }

  get pendingLines(): number {
    return this.queue.length + this.#inFlightLines
  }

  get pendingBytes(): number {
    return this.queue.bytes + this.#inFlightBytes
  }

  /** Writes all that waits. What could not be written is in the queue again; the error says why. */
  async drain(): Promise<Error | null> {
    try {
      // Set back by more than that, too: the file would stay open until the old time comes again.
      if (this.#file && Math.abs(this.#rules.now() - this.#file.openedAt) >= this.#rules.rotateMs) await this.rotate()
      if (this.queue.length === 0) return null
      await this.#leaveRemovedFile()
      while (this.queue.length > 0) {
        const fault = await this.#writeBatch()
        if (fault) return fault
      }
      return null
    } catch (error) {
      return error as Error
    }
  }

  /** Closes the current file; the next line opens another. */
  async rotate(): Promise<void> {
    const file = this.#file
    if (!file) return
    this.#file = null
    await file.close()
    this.#rules.closed(this, file.name)
  }

  async #leaveRemovedFile(): Promise<void> {
    const file = this.#file
    if (!file || (await file.inPlace())) return
    this.#file = null
    this.#rules.removed(this, file)
    await file.close()
  }

  async #writeBatch(): Promise<Error | null> {
    if (!this.#file) {
      this.#file = await LogFile.create(this.#rules.dir, this.name, this.#rules.now(), this.#rules.namePid())
      this.#filesOpened += 1
    }
    const file = this.#file
    const waiting = this.queue.bytes
    const batch = this.queue.take(WRITE_BYTES)
    const before = file.bytes
    this.#inFlightLines = batch.length
    this.#inFlightBytes = waiting - this.queue.bytes
    const { written, fault } = await file.write(batch)
    this.#inFlightLines = 0
    this.#inFlightBytes = 0
    this.#bytesWritten += file.bytes - before
    if (fault) {
      this.queue.putBack(batch.slice(written))
      if (!isDiskFull(fault)) await this.rotate()
    } else if (before > 0 && file.bytes >= this.#rules.rotateBytes) {
      // Never after its first write: closing a file repeats the devices, which may be larger than a file should be.
      await this.rotate()
    }
    return fault
  }
}
