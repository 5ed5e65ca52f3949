/** Writes the progress of runs now and then, so that the journal stays short: steps that are durable in the log need no journal. */
import type { Log } from '../core/kinds.ts'
import { syncStepLog } from './durable.ts'
import type { Journal } from './journal.ts'
import type { Registry } from './registry.ts'

/** File systems store times coarsely. */
const CLOCK_SLACK_MS = 5000

export interface CheckpointsOptions {
  readonly logDir: string | null
  readonly log: Log
  readonly journal: Journal
  readonly registry: Registry
  /** Resolves when the runs were read; null: nobody has asked for them. */
  readonly opened: () => Promise<void> | null
  /** False: the step log cannot be written now. */
  readonly flush: () => Promise<boolean>
}

export class Checkpoints {
  readonly #options: CheckpointsOptions
  #syncedAt = Date.now()
  #current: Promise<void> | null = null

  constructor(options: CheckpointsOptions) {
    this.#options = options
  }

  /** Never rejects; a call during a checkpoint waits for that one. */
  write(): Promise<void> {
    this.#current ??= this.#write()
      .catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'the progress of runs could not be written; it will be tried again'),
      )
      .finally(() => {
        this.#current = null
      })
    return this.#current
  }

  /** Waits for one that is under way, then writes another. */
  async writeLast(): Promise<void> {
    await this.#current
    await this.write()
  }

  async #write(): Promise<void> {
    const { logDir, journal, registry, opened, flush } = this.#options
    const opening = opened()
    if (!opening) return
    await opening
    let taken: ReturnType<Registry['takeDirty']> = []
    const journals = await journal.rotate(() => {
      taken = registry.takeDirty()
    })
    if (taken.length === 0 && journals.length === 0) return
    try {
      const startedAt = Date.now()
      if (!(await flush())) throw new Error('the step log cannot be written now')
      if (logDir !== null) await syncStepLog(logDir, this.#syncedAt - CLOCK_SLACK_MS)
      this.#syncedAt = startedAt
      await registry.saveProgress(taken)
      await journal.discard(journals)
    } catch (error) {
      registry.markDirty(taken.map(({ id }) => id))
      throw error
    }
  }
}
