/**
 * What must survive a kill: a table of keys and values, in memory and in one append-only file. One journal, not a file per message:
 * what is decided together (an alert fires, a channel must send it, it was sent) is one line with a checksum, which counts as a whole
 * or not at all, so a kill neither loses a message nor sends it twice. A disk that does not answer is a fault like any other.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DiskStuck, STUCK_AT_END_MS, STUCK_MS } from '../core/disk-lane.ts'
import type { Log } from '../core/kinds.ts'
import { setAside } from './corrupt-file.ts'
import { JournalFault } from './journal-fault.ts'
import { JournalFile, patiently } from './journal-file.ts'
import { JournalFolder } from './journal-folder.ts'
import { type Change, decodeJournal, encodeEverything, encodeJournal, encodeLine } from './journal-line.ts'
import { UnwrittenLines } from './unwritten-lines.ts'

const FILE = 'alerts.journal'
const REWRITE_BYTES = 256 * 1024

export interface JournalOptions {
  /** null: nothing is kept on disk. */
  readonly dir: string | null
  readonly log: Log
  readonly now: () => number
  /** How soon a failed disk is tried again. */
  readonly retryMs?: number
  readonly heartbeatMs?: number
  /** How often the open file is compared with its path. */
  readonly lookEveryMs?: number
  /** Entries of a file that could not be read at the start. Without it such a file is set aside. */
  readonly onFound?: (entries: ReadonlyMap<string, unknown>) => void
}

export class Journal {
  readonly #options: JournalOptions
  readonly #file: JournalFile | null
  readonly #folder: JournalFolder | null
  #table = new Map<string, unknown>()
  #dirty = new Set<string>()
  /** Of those, what shared memory does not have either. */
  readonly #unnoted = new Set<string>()
  #liveBytes = 0
  /** Appended, and not yet safe from a power cut. */
  #isUnsynced = false
  #id = randomBytes(12).toString('hex')
  #unwritten: UnwrittenLines | null = null
  /** The file has the id, so a restart finds the lines in shared memory. */
  #isNamed = false
  /** Lines that the system does not have yet. */
  #appending = 0
  #writing: Promise<boolean> | null = null
  #next: Promise<boolean> | null = null
  readonly #fault: JournalFault
  /** Why the file that was found must be set aside before it is rewritten. */
  #damage: string | null = null
  /** What was read at the start without a lock. */
  #found: string | null = null
  #corrupt: string[] = []
  #closed = false

  constructor(options: JournalOptions) {
    this.#options = options
    this.#fault = new JournalFault(options.dir, options.log)
    this.#file = options.dir === null ? null : new JournalFile(options.dir, join(options.dir, FILE), options.lookEveryMs)
    this.#folder = options.dir === null ? null : new JournalFolder(options.dir, options.heartbeatMs)
    if (this.#file && this.#folder) this.#load(this.#file, this.#folder)
  }

  /** Why nothing is kept on disk now; null when it is. */
  get fault(): string | null {
    this.#noticeStuckDisk()
    return this.#fault.reason
  }

  /** Files set aside because they could not be read in full. */
  get corrupt(): readonly string[] {
    return this.#corrupt
  }

  entries(prefix: string): [string, unknown][] {
    return [...this.#table].filter(([key]) => key.startsWith(prefix))
  }

  get(key: string): unknown {
    return this.#table.get(key)
  }

  /** Written as it is at the next commit: an object that changes after set() must be set again. */
  set(key: string, value: unknown): void {
    this.#table.set(key, value)
    this.#change(key)
  }

  delete(key: string): void {
    if (this.#table.delete(key)) this.#change(key)
  }

  #change(key: string): void {
    this.#dirty.add(key)
    this.#unnoted.add(key)
  }

  get isDirty(): boolean {
    return this.#dirty.size > 0
  }

  /** A commit is due even when nothing changed: to retry a disk or folder, or to renew the lock. */
  get isDue(): boolean {
    return this.fault !== null || this.#folder?.isBeatDue === true || this.#file?.isLookDue === true
  }

  /** Whether anything that was set is not known to be on disk. */
  get isPending(): boolean {
    return this.#dirty.size > 0 || this.#isUnsynced
  }

  /** Hands what was set to the system as one line, without waiting: it survives a kill. An error shows at commit(). */
  write(): void {
    if (this.#file === null || this.#closed) return
    if (this.#file.isOpen && this.fault === null) this.#append(this.#file)
    else if (this.#isNamed && this.#unnoted.size > 0 && !this.#folder?.isLockedOut) this.#note(this.#unnoted)
  }

  /** True: everything set so far is on disk. False: the disk cannot be written (see `fault`), or there is none. */
  async commit(limitMs = STUCK_MS): Promise<boolean> {
    if (this.#noticeStuckDisk()) return false
    try {
      return await patiently(() => this.#commit(), limitMs)
    } catch (error) {
      this.#fault.begin(error as Error)
      return false
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    const isKept = await this.commit(STUCK_AT_END_MS)
    this.#closed = true
    if (this.#file === null) return
    if (!isKept && !this.#folder?.isLockedOut)
      this.#options.log.error({ dir: this.#options.dir }, `the latest changes of the alerts could not be written: ${this.#fault.reason}`)
    await patiently(() => this.#leave(), STUCK_AT_END_MS).catch((error: unknown) => {
      if (!(error instanceof DiskStuck)) throw error
    })
  }

  async #leave(): Promise<void> {
    await this.#file?.close()
    await this.#folder?.leave()
  }

  #commit(): Promise<boolean> {
    if (this.#writing) {
      // What was set during a write needs one more write; one is enough for all who wait.
      this.#next ??= this.#writing.then(() => {
        this.#next = null
        return this.#start()
      })
      return this.#next
    }
    return this.#start()
  }

  #start(): Promise<boolean> {
    this.#writing = this.#write().finally(() => (this.#writing = null))
    return this.#writing
  }

  async #write(): Promise<boolean> {
    const [file, folder] = [this.#file, this.#folder]
    if (file === null || folder === null || this.#closed) return false
    if (!this.isPending && this.#fault.reason === null && file.isOpen && !folder.isBeatDue && !file.isLookDue) return true
    if (this.#fault.isWithin(this.#options.retryMs ?? 5000)) return false
    const faultsBefore = this.#fault.count
    try {
      await folder.showLife()
      const isRemoved = file.isOpen && (await this.#isRemoved(file))
      if (this.#fault.reason !== null || !file.isOpen || isRemoved) {
        await this.#enterLate(file, folder)
        await this.#rewrite(file)
      } else {
        this.#append(file)
        this.#isUnsynced = false
        await file.handed()
        if (file.bytes > Math.max(REWRITE_BYTES, 3 * this.#liveBytes)) await this.#rewrite(file)
        else await file.sync()
      }
      // A line failed in the meantime, or the disk took too long: rewrite everything first.
      if (this.#fault.count > faultsBefore) return false
      this.#fault.end()
      this.#noteWritten()
      return true
    } catch (error) {
      this.#fault.begin(error as Error)
      return false
    }
  }

  async #isRemoved(file: JournalFile): Promise<boolean> {
    if (!file.isLookDue || (await file.isInPlace())) return false
    this.#options.log.warn(
      { dir: this.#options.dir, file: FILE, entries: this.#table.size },
      'the alert journal was removed or replaced while it was in use: it is made again from memory',
    )
    return true
  }

  #append(file: JournalFile): void {
    if (this.#dirty.size === 0) return
    this.#isUnsynced = true
    this.#appending++
    file
      .append(this.#nextLine())
      // After a fault everything is rewritten, so nothing of this line is lost.
      .catch((error: unknown) => this.#fault.begin(error as Error))
      .finally(() => {
        this.#appending--
        this.#noteWritten()
      })
  }

  /** What was set since the last one. It survives a kill from here. */
  #nextLine(): string {
    const line = this.#note(this.#dirty)
    this.#dirty.clear()
    return line
  }

  #note(keys: ReadonlySet<string>): string {
    const line = encodeLine([...keys].map((key): Change => (this.#table.has(key) ? [key, this.#table.get(key)] : [key])))
    this.#unnoted.clear()
    this.#unwritten ??= new UnwrittenLines(this.#id)
    if (!this.#unwritten.add(line)) this.#unwritten.replace(encodeEverything(this.#id, this.#table))
    return line
  }

  #noteWritten(): void {
    if (this.#appending === 0 && this.#dirty.size === 0 && this.#fault.reason === null) this.#unwritten?.clear()
  }

  async #rewrite(file: JournalFile): Promise<void> {
    // Lines that wait in shared memory must end with the newest.
    if (this.#dirty.size > 0) this.#nextLine()
    this.#isUnsynced = false
    const content = encodeJournal(this.#id, this.#table)
    await file.replace(content)
    this.#isNamed = true
    this.#liveBytes = content.length
  }

  #load(file: JournalFile, folder: JournalFolder): void {
    let text: string | null = null
    try {
      folder.enterNow()
      text = this.#read(file)
    } catch (error) {
      this.#fault.begin(error as Error)
      // A full disk takes no lock, but what it holds still counts: without it every alert would be announced again.
      text = this.#found = folder.isLockedOut ? null : file.tryReadNow()
    }
    if (text !== null) this.#table = new Map(this.#take(text))
  }

  #take(text: string): ReadonlyMap<string, unknown> {
    const { id, entries, damage } = decodeJournal(text, (found) => {
      this.#unwritten = new UnwrittenLines(found)
      return this.#unwritten.read()
    })
    this.#id = id ?? this.#id
    this.#isNamed = id !== null
    this.#damage = damage
    return entries
  }

  /** The folder could not be used at the start, so a file found there now was never read. */
  async #enterLate(file: JournalFile, folder: JournalFolder): Promise<void> {
    const reason = await folder.enter()
    const text = reason === null ? null : await file.read()
    if (text !== null && text !== this.#found) {
      if (this.#options.onFound) this.#options.onFound(this.#take(text))
      else this.#damage = reason
    }
    const { now, log } = this.#options
    if (this.#damage !== null) this.#corrupt.push(await setAside(folder.dir, FILE, { reason: this.#damage, kept: this.#table, now, log }))
    this.#damage = null
  }

  #read(file: JournalFile): string | null {
    try {
      return file.readNow()
    } catch (error) {
      this.#damage = (error as Error).message
      return null
    }
  }

  #noticeStuckDisk(): boolean {
    return this.#file !== null && !this.#closed && this.#fault.noticeStuckDisk()
  }
}
