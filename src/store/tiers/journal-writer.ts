/** Appends records to the journal: one file an hour, named by the time of its records, so that a clock that is set changes nothing else. */
import { join } from 'node:path'
import { KeptFile } from '../../core/kept-file.ts'
import { type Line, LineQueue } from '../line-queue.ts'
import { LogFile } from '../log-file.ts'
import { newState, readState, STATE_FILE } from './state.ts'
import { JOURNAL_FOLDER, journalName } from './tier-table.ts'

/** What waits for the disk: an hour of records of eight GPUs. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024
const WRITE_BYTES = 256 * 1024

export class JournalWriter {
  readonly #root: string
  readonly #queue = new LineQueue()
  #file: LogFile | null = null
  #hasState = false
  #dropped = 0

  constructor(root: string) {
    this.#root = root
  }

  get dropped(): number {
    return this.#dropped
  }

  get pendingLines(): number {
    return this.#queue.length
  }

  push(text: string, at: number): void {
    this.#queue.push(text, at)
    while (this.#queue.bytes > MOST_WAITING_BYTES && this.#queue.shift()) this.#dropped += 1
  }

  /** Another process keeps the records of this folder. */
  forget(): void {
    this.#queue.clear()
  }

  /** Writes all that waits; what could not be written waits on, and the error is thrown. `startedAt`: of the first sample. */
  async write(startedAt: number): Promise<void> {
    if (this.#queue.length === 0) return
    await this.#begin(startedAt)
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      let written = 0
      try {
        const file = await this.#fileFor(journalName(batch[0]?.at ?? 0))
        const outcome = await file.write(batch)
        written = outcome.written
        if (outcome.fault) throw outcome.fault
      } catch (error) {
        this.#queue.putBack(batch.slice(written))
        await this.close().catch(() => undefined)
        throw error
      }
    }
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = null
    await file?.close()
  }

  /** Lines of one hour. */
  #nextBatch(): Line[] {
    const batch = this.#queue.take(WRITE_BYTES)
    const name = journalName(batch[0]?.at ?? 0)
    const other = batch.findIndex(({ at }) => journalName(at) !== name)
    if (other < 0) return batch
    this.#queue.putBack(batch.slice(other))
    return batch.slice(0, other)
  }

  async #fileFor(name: string): Promise<LogFile> {
    if (this.#file && (this.#file.name !== name || !(await this.#file.inPlace()))) await this.close()
    this.#file ??= await LogFile.append(join(this.#root, JOURNAL_FOLDER), name)
    return this.#file
  }

  /** Before the first record of all: which logs are older than the records has to be known. */
  async #begin(startedAt: number): Promise<void> {
    if (this.#hasState) return
    if ((await readState(this.#root)) === null) {
      const file = new KeptFile(join(this.#root, STATE_FILE), { mode: 0o640, folderMode: 0o750, flush: true })
      await file.save(() => `${JSON.stringify(newState(startedAt))}\n`)
    }
    this.#hasState = true
  }
}
