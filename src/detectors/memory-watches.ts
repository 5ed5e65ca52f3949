/** The series of memory that a detector watches: bounded, the least recently used ones are dropped first. */
import { isSilent } from './memory-detector.ts'

const RUN_CAP = 16
const GPU_CAP = 64

export interface Watch {
  readonly lastSeenAt: number | null
  restart(): void
  snapshot(): unknown
  restore(state: never): void
}

export interface MemoryWatchesState {
  readonly watches: readonly (readonly [string, unknown])[]
  /** Keys of run watches, least recently used first. */
  readonly runs: readonly string[]
}

/** Keys: `gpu ID`, `pid ID PID`, `host ID PID` and `run RANK@RUN`. */
export class MemoryWatches<W extends Watch> {
  readonly #create: (key: string) => W
  readonly #processesPerGpu: number
  readonly #watches = new Map<string, W>()
  #runs: readonly string[] = []
  readonly #keys = new Map<string, string>()

  constructor(create: (key: string) => W, processesPerGpu = 0) {
    this.#create = create
    this.#processesPerGpu = processesPerGpu
  }

  get(key: string): W | undefined {
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

  watch(key: string): W {
    const known = this.#watches.get(key)
    if (known !== undefined) return known
    if (!key.startsWith('run ')) this.#makeRoom(key.slice(0, key.lastIndexOf(' ') + 1))
    const made = this.#create(key)
    this.#watches.set(key, made)
    return made
  }

  /** Marks a run as used; returns the key of the run that has to go for it, or null. */
  useRun(key: string): string | null {
    if (this.#runs.at(-1) === key) return null
    this.#runs = [...this.#runs.filter((one) => one !== key), key]
    return this.#runs.length > RUN_CAP ? (this.#runs[0] ?? null) : null
  }

  deleteRun(id: string): void {
    for (const key of this.#runs) if (key.endsWith(`@${id}`)) this.delete(key)
  }

  /** Keys of the runs that stopped silently. */
  silentRuns(at: number): readonly string[] {
    return this.#runs.filter((key) => isSilent(this.#watches.get(key)?.lastSeenAt ?? null, at))
  }

  snapshot(): MemoryWatchesState {
    return { watches: [...this.#watches].map(([key, watch]) => [key, watch.snapshot()] as const), runs: [...this.#runs] }
  }

  /** The state of an older version may lack the order of the runs. */
  restore({
    watches,
    runs = watches.map(([key]) => key).filter((key) => key.startsWith('run ')),
  }: Partial<MemoryWatchesState> & Pick<MemoryWatchesState, 'watches'>): void {
    this.#watches.clear()
    for (const [key, state] of watches) {
      const watch = this.#create(key)
      watch.restore(state as never)
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
