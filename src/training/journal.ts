/**
 * The write-ahead journal of received batches. A batch is written here, applied, then acknowledged, so what was acknowledged survives
 * a kill and a power cut. Batches that arrive while the disk works share its next write; they are applied one by one, in file order.
 */
import { join } from 'node:path'
import { type DiskFile, IN_PLACE_MS, open, readdir, readFile, rm } from '../core/disk.ts'
import { isStillRunning, startTicksOf } from '../core/process-identity.ts'
import { NotAFile } from '../core/system-file.ts'
import { ensureFolder, syncFolder } from './durable.ts'

export interface JournalEntry {
  readonly run: string
  readonly receivedAt: number
  readonly body: Buffer
}

interface Waiting {
  readonly entry: JournalEntry
  readonly bytes: Buffer
  resolve(): void
  reject(reason: unknown): void
}

const NAME = /^journal-(\d+)-(\d+)-(\d+)\.ndjson$/

export class Journal {
  readonly #dir: string | null
  readonly #apply: (entry: JournalEntry) => Promise<void>
  #queue: Waiting[] = []
  #working: Promise<void> | null = null
  #file: DiskFile | null = null
  #path = ''
  #bytes = 0
  #number = 0
  #closed: string[] = []
  #rotation: (() => void) | null = null
  #lookedMs = Number.NEGATIVE_INFINITY
  readonly #onRemoved: (path: string) => void
  readonly #lookEveryMs: number

  /** `dir` null: nothing is kept, entries are only applied. */
  constructor(
    dir: string | null,
    apply: (entry: JournalEntry) => Promise<void>,
    onRemoved: (path: string) => void = () => undefined,
    lookEveryMs = IN_PLACE_MS,
  ) {
    this.#dir = dir
    this.#apply = apply
    this.#onRemoved = onRemoved
    this.#lookEveryMs = lookEveryMs
  }

  /** Of the current file. */
  get bytes(): number {
    return this.#bytes
  }

  /** Resolves when the entry is written and applied; rejects when it could not be written. */
  append(entry: JournalEntry): Promise<void> {
    const head = `${JSON.stringify({ run: entry.run, at: entry.receivedAt, bytes: entry.body.length })}\n`
    const bytes = this.#dir === null ? entry.body : Buffer.concat([Buffer.from(head), entry.body, Buffer.from('\n')])
    return new Promise((resolve, reject) => {
      this.#queue.push({ entry, bytes, resolve, reject })
      this.#work()
    })
  }

  /** Removes an entry whose write has not begun: nobody waits for it any more. */
  withdraw(entry: JournalEntry): void {
    this.#queue = this.#queue.filter((waiting) => waiting.entry !== entry)
  }

  /** Starts a new file between two entries; `atRest` runs when all old entries have been applied and no new one. */
  rotate(atRest: () => void): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      this.#rotation = () => {
        atRest()
        const file = this.#file
        if (file) this.#closed.push(this.#path)
        this.#file = null
        this.#bytes = 0
        if (file) file.close().then(() => resolve([...this.#closed]), reject)
        else resolve([...this.#closed])
      }
      this.#work()
    })
  }

  /** Files of an earlier process, to be discarded with our own. */
  adopt(paths: readonly string[]): void {
    this.#closed.push(...paths)
  }

  async discard(paths: readonly string[]): Promise<void> {
    this.#closed = this.#closed.filter((path) => !paths.includes(path))
    await Promise.all(paths.map((path) => rm(path, { force: true })))
  }

  async close(): Promise<void> {
    await this.#working
    await this.#file?.close()
    this.#file = null
  }

  #work(): void {
    this.#working ??= this.#drain().finally(() => {
      this.#working = null
      if (this.#queue.length > 0 || this.#rotation) this.#work()
    })
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 || this.#rotation) {
      this.#rotation?.()
      this.#rotation = null
      const group = this.#queue
      this.#queue = []
      try {
        if (this.#dir !== null && group.length > 0) await this.#write(this.#dir, Buffer.concat(group.map(({ bytes }) => bytes)))
      } catch (error) {
        for (const { reject } of group) reject(error)
        continue
      }
      for (const { entry, resolve, reject } of group) await this.#apply(entry).then(resolve, reject)
    }
  }

  async #write(dir: string, bytes: Buffer): Promise<void> {
    await this.#leaveRemovedFile()
    const file = this.#file ?? (await this.#begin(dir))
    let written = 0
    try {
      while (written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written, this.#bytes + written)
        if (bytesWritten === 0) throw new Error(`the system wrote 0 of ${bytes.length - written} bytes to ${this.#path}`)
        written += bytesWritten
      }
    } catch (error) {
      // Half a group must not be replayed as if it had been acknowledged.
      await file.truncate(this.#bytes).catch(() => undefined)
      throw error
    }
    try {
      await file.datasync()
    } catch (error) {
      await this.#abandon(file)
      throw error
    }
    this.#bytes += written
  }

  /** What it held is applied; the callback makes that durable in another way. */
  async #leaveRemovedFile(): Promise<void> {
    const file = this.#file
    if (file === null || performance.now() - this.#lookedMs < this.#lookEveryMs) return
    this.#lookedMs = performance.now()
    if (await file.isInPlace()) return
    this.#file = null
    this.#bytes = 0
    await file.close()
    this.#onRemoved(this.#path)
  }

  async #begin(dir: string): Promise<DiskFile> {
    await ensureFolder(dir)
    const path = join(dir, `journal-${process.pid}-${startTicksOf(process.pid) ?? 0}-${Date.now() * 1000 + (this.#number++ % 1000)}.ndjson`)
    const file = await open(path, 'wx', 0o640)
    try {
      // Without its name in the folder a file is not there after a power cut, however well it was written.
      await syncFolder(dir)
    } catch (error) {
      await file.close()
      await rm(path, { force: true })
      throw error
    }
    this.#file = file
    this.#path = path
    this.#bytes = 0
    return file
  }

  /** After a failed sync nobody knows what the disk holds of this file, so it is not written again. */
  async #abandon(file: DiskFile): Promise<void> {
    this.#file = null
    await file.truncate(this.#bytes).catch(() => undefined)
    await file.close().catch(() => undefined)
    if (this.#bytes > 0) this.#closed.push(this.#path)
    else await rm(this.#path, { force: true }).catch(() => undefined)
    this.#bytes = 0
  }
}

export interface LeftJournal {
  readonly path: string
  readonly entries: readonly JournalEntry[]
}

/** The journals of dead processes, oldest first; a torn entry at the end is left out. */
export async function leftJournals(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names
    .flatMap((name) => {
      const [, pid, start, number] = NAME.exec(name) ?? []
      return number === undefined || isStillRunning(Number(pid), Number(start) || null)
        ? []
        : [{ path: join(dir, name), number: Number(number) }]
    })
    .sort((a, b) => a.number - b.number)
    .map(({ path }) => path)
}

export async function readJournal(path: string): Promise<LeftJournal> {
  const bytes = await readFile(path).catch((error: unknown) => {
    if (error instanceof NotAFile) return Buffer.alloc(0)
    throw error
  })
  return { path, entries: entriesIn(bytes) }
}

export function entriesIn(bytes: Buffer): JournalEntry[] {
  const entries: JournalEntry[] = []
  let offset = 0
  for (;;) {
    const end = bytes.indexOf(10, offset)
    const head = end === -1 ? null : parseHead(bytes.toString('utf8', offset, end))
    if (head === null || end + 1 + head.bytes > bytes.length) return entries
    entries.push({ run: head.run, receivedAt: head.at, body: bytes.subarray(end + 1, end + 1 + head.bytes) })
    offset = end + 1 + head.bytes + 1
  }
}

function parseHead(text: string): { run: string; at: number; bytes: number } | null {
  try {
    const { run, at, bytes } = JSON.parse(text) as Record<string, unknown>
    return typeof run === 'string' && typeof at === 'number' && typeof bytes === 'number' && bytes >= 0 ? { run, at, bytes } : null
  } catch {
    // A header torn by the death of the process: the journal ends here.
    return null
  }
}
