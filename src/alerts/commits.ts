/** When the journal is written: at once to the system, so that a kill loses nothing, and soon after to the disk, against a power cut. */
import type { Journal } from './journal.ts'
import type { ObservedTimeState } from './observed-time.ts'

const COMMIT_DELAY_MS = 50
const TIME = 'time'

export interface KeptTimes {
  readonly engine: ObservedTimeState
  readonly delivery: ObservedTimeState
}

export interface CommitsOptions {
  readonly journal: Journal
  /** The clocks that waiting is measured by, kept with what was decided. */
  readonly times: () => KeptTimes
  readonly inBackground: (work: Promise<unknown>) => void
}

export class Commits {
  readonly #options: CommitsOptions
  #timer: NodeJS.Timeout | null = null

  constructor(options: CommitsOptions) {
    this.#options = options
  }

  /** Nobody waits for the disk. */
  soon(): void {
    this.#writeDown()
    this.#timer ??= setTimeout(() => this.#options.inBackground(this.flush()), COMMIT_DELAY_MS)
  }

  flush(): Promise<boolean> {
    this.#stopWaiting()
    this.#writeDown()
    return this.#options.journal.commit()
  }

  async close(): Promise<void> {
    this.#stopWaiting()
    this.#writeDown()
    await this.#options.journal.close()
  }

  #stopWaiting(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
  }

  #writeDown(): void {
    const { journal, times } = this.#options
    if (journal.isDirty) journal.set(TIME, times())
    journal.write()
  }
}

/** The `times` of the last write. */
export function keptTimes(journal: { get(key: string): unknown }): KeptTimes | undefined {
  return journal.get(TIME) as KeptTimes | undefined
}
