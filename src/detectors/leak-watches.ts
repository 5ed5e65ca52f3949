/** The series that are watched for leaks, bounded: of GPUs and processes by age, of runs by their silence. */
import { LeakWatch, type LeakWatchState } from '../core/memory/leak-watch.ts'
import { RunTable, type RunTableOptions } from './run-table.ts'

/** What marks a rank in the saved state. */
const RANK = 'run '
const GPU_CAP = 64

export interface LeakWatchesState {
  readonly watches: readonly (readonly [string, LeakWatchState])[]
}

export interface LeakWatchesOptions {
  readonly processesPerGpu: number
  readonly caution: number
}

/** Keys: `gpu ID`, `pid ID PID`, `host ID PID`; of ranks their rankKey. */
export class LeakWatches {
  readonly #options: LeakWatchesOptions
  readonly #watches = new Map<string, LeakWatch>()
  readonly ranks: RunTable<LeakWatch>
  readonly #keys = new Map<string, string>()

  constructor(options: LeakWatchesOptions, ranks: RunTableOptions<LeakWatch>) {
    this.#options = options
    this.ranks = new RunTable(ranks)
  }

  get(key: string): LeakWatch | undefined {
    return this.#watches.get(key)
  }

  delete(key: string): void {
    this.#watches.delete(key)
  }

  /** Cached: a new string costs more than most of the work for a quiet sample. */
  keyOfGpu(gpu: string): string {
    let key = this.#keys.get(gpu)
    if (key === undefined) {
      key = `gpu ${gpu}`
      if (this.#keys.size < GPU_CAP) this.#keys.set(gpu, key)
    }
    return key
  }

  hasRoom(key: string): boolean {
    if (this.#watches.has(key)) return true
    let gpus = 0
    for (const one of this.#watches.keys()) if (one.startsWith('gpu ')) gpus++
    return gpus < GPU_CAP
  }

  watch(key: string): LeakWatch {
    const known = this.#watches.get(key)
    if (known !== undefined) return known
    this.#makeRoom(key.slice(0, key.lastIndexOf(' ') + 1))
    const made = new LeakWatch('seconds', this.#options.caution)
    this.#watches.set(key, made)
    return made
  }

  snapshot(): LeakWatchesState {
    const ranks = Array.from(this.ranks, ([key, watch]) => [`${RANK}${key}`, watch.snapshot()] as const)
    return { watches: [...Array.from(this.#watches, ([key, watch]) => [key, watch.snapshot()] as const), ...ranks] }
  }

  restore({ watches }: LeakWatchesState): void {
    this.#watches.clear()
    this.ranks.clear()
    for (const [key, state] of watches) {
      const isRank = key.startsWith(RANK)
      const watch = new LeakWatch(isRank ? 'steps' : 'seconds', this.#options.caution)
      watch.restore(state)
      if (isRank) this.ranks.set(key.slice(RANK.length), watch)
      else this.#watches.set(key, watch)
    }
  }

  /** Drops the oldest when many processes are the largest in turn. */
  #makeRoom(prefix: string): void {
    const same = [...this.#watches.keys()].filter((key) => key.startsWith(prefix) && key.lastIndexOf(' ') + 1 === prefix.length)
    const oldest = same[0]
    if (prefix !== 'gpu ' && oldest !== undefined && same.length >= 2 * this.#options.processesPerGpu) this.#watches.delete(oldest)
  }
}
