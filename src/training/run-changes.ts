/** Changes of runs, one at a time: the ranks of a run report at the same moment. */
import type { Log } from '../core/kinds.ts'
import type { Registry } from './registry.ts'
import { publicRun, type RunRecord } from './run-record.ts'
import type { StepReceiver } from './training-contract.ts'

/** Rejects with DiskStuck while the disk does not answer; the work continues when it does. */
export type Patiently = <T>(work: () => Promise<T>) => Promise<T>

export interface RunChangesOptions {
  readonly hub: StepReceiver
  readonly log: Log
  readonly registry: Registry
  readonly patiently: Patiently
}

export class RunChanges {
  readonly #options: RunChangesOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: RunChangesOptions) {
    this.#options = options
  }

  /** Keeps what `make` returns and passes it to the hub; null: nothing changes. */
  change(id: string, make: (known: RunRecord | undefined) => RunRecord | null): Promise<RunRecord | null> {
    const { hub, registry, patiently } = this.#options
    let isGivenUp = false
    const turn = this.#last.then(async () => {
      // The sender was refused, and will ask again.
      const run = isGivenUp ? null : make(registry.get(id))
      if (!run) return null
      await registry.keep(run)
      hub.receiveRun(publicRun(run))
      return run
    })
    this.#last = turn.catch(() => undefined)
    return patiently(() => turn).catch((error: unknown) => {
      isGivenUp = true
      throw error
    })
  }

  /** Does other work in its turn, once `ready` resolves. */
  workAfter(ready: Promise<void>, work: () => Promise<void>): void {
    this.#last = Promise.all([this.#last, ready]).then(work).catch(this.couldNotKeep)
  }

  /** Resolves when the changes so far are made. */
  async settled(): Promise<void> {
    await this.#last
  }

  readonly couldNotKeep = (error: unknown): void =>
    this.#options.log.warn({ err: error }, 'the state of a run could not be written; it will be tried again')
}
