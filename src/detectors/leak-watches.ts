/** The series that are watched for leaks: bounded, the least recently used ones are dropped first. */
import { LeakWatch, type LeakWatchState } from '../core/memory/leak-watch.ts'

const RUN_CAP = 16
const GPU_CAP = 64

export interface LeakWatchesState {
  readonly watches: readonly (readonly [string, LeakWatchState])[]
  /** Keys of run watches, least recently used first. */
  readonly runs: readonly string[]
}

/** Keys: `gpu ID`, `pid ID PID`, `host ID PID` and `run RANK@RUN`. */
export class LeakWatches {
  readonly #processesPerGpu: number
  readonly #watches = new Map<string, LeakWatch>()
  #runs: readonly string[] = []
  readonly #keys = new Map<string, string>()

  constructor(processesPerGpu: number) {
    this.#processesPerGpu = processesPerGpu
  }

  get runs(): readonly string[] {
    return this.#runs
  }

  get(key: string): LeakWatch | undefined {
    return this.#watches.get(key)
  }

  delete(key: string): void {
    this.#watches.delete(key)
    if (key.startsWith('run ')) this.#runs = this.#runs.filter((one) => one !== key)
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
    if (!key.startsWith('run ')) this.#makeRoom(key.slice(0, key.lastIndexOf(' ') + 1))
    const made = watchFor(key)
    this.#watches.set(key, made)
    return made
  }

  /** Marks a run as used; returns the key of the run that has to go for it, or null. */
  useRun(key: string): string | null {
    if (this.#runs.at(-1) === key) return null
    this.#runs = [...this.#runs.filter((one) => one !== key), key]
    return this.#runs.length > RUN_CAP ? (this.#runs[0] ?? null) : null
  }

  snapshot(): LeakWatchesState {
    return { watches: [...this.#watches].map(([key, watch]) => [key, watch.snapshot()] as const), runs: [...this.#runs] }
  }

  restore({ watches, runs }: LeakWatchesState): void {
    this.#watches.clear()
    for (const [key, state] of watches) {
      const watch = watchFor(key)
      watch.restore(state)
      this.#watches.set(key, watch)
    }
    this.#runs = [...runs]
  }

  /** Drops the oldest when many processes are the largest in turn. */
  #makeRoom(prefix: string): void {
    const same = [...this.#watches.keys()].filter((key) => key.startsWith(prefix) && key.lastIndexOf(' ') + 1 === prefix.length)
    const oldest = same[0]
    if (prefix !== 'gpu ' && oldest !== undefined && same.length >= 2 * this.#processesPerGpu) this.#watches.delete(oldest)
  }
}

function watchFor(key: string): LeakWatch {
  return new LeakWatch(key.startsWith('run ') ? 'steps' : 'seconds')
}
