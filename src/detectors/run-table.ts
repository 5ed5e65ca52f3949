/** The runs (or ranks) that a detector follows: one that fell silent makes room for a new one, one that still reports never does. */
import { BoundedMap } from '../core/bounded-map.ts'
import { MOST_RUNS } from '../core/detector-contract.ts'

/** A run that reported within this time is alive. */
const ALIVE_MS = 60_000

export interface RunTableOptions<V> {
  readonly cap?: number | undefined
  /** Time of its last step. */
  lastAt(value: V): number
  /** Whether a finding about it is open: it is the last to go. */
  isOpen(key: string): boolean
}

export class RunTable<V> extends BoundedMap<string, V> {
  readonly #cap: number
  readonly #options: RunTableOptions<V>
  /** Not followed, with the time of their last step; longest silent first. */
  readonly #missed: BoundedMap<string, number>

  constructor(options: RunTableOptions<V>) {
    const cap = options.cap ?? MOST_RUNS
    super(cap)
    this.#cap = cap
    this.#options = options
    this.#missed = new BoundedMap(cap, { isRenewed: true })
  }

  /** A new entry; null while all others are alive and there is no room. */
  admit(key: string, at: number, make: () => V): V | null {
    if (this.size >= this.#cap) {
      const victim = this.#silentLongest(at)
      if (victim === null) {
        this.#missed.set(key, at)
        return null
      }
      this.#missed.set(victim.key, victim.lastAt)
      super.delete(victim.key)
    }
    this.#missed.delete(key)
    return this.keep(key, make())
  }

  override delete(key: string): boolean {
    this.#missed?.delete(key)
    return super.delete(key)
  }

  /** Every rank of a run; the keys are rankKeys. */
  deleteRun(run: string): void {
    for (const key of [...this.keys(), ...this.#missed.keys()]) if (key.endsWith(`@${run}`)) this.delete(key)
  }

  /** Those that are not followed although they have not ended. */
  missed(): Iterable<string> {
    return this.#missed.keys()
  }

  /** Deletes and returns those not followed that have been silent for this long. */
  dropSilent(at: number, silentMs: number): readonly string[] {
    if (this.#missed.size === 0) return []
    const silent = [...this.#missed].filter(([, lastAt]) => at - lastAt > silentMs).map(([key]) => key)
    for (const key of silent) this.#missed.delete(key)
    return silent
  }

  #silentLongest(at: number): { readonly key: string; readonly lastAt: number } | null {
    let best: { key: string; lastAt: number; isOpen: boolean } | null = null
    for (const [key, value] of this) {
      const lastAt = this.#options.lastAt(value)
      if (at - lastAt <= ALIVE_MS) continue
      const isOpen = this.#options.isOpen(key)
      if (best === null || Number(isOpen) < Number(best.isOpen) || (isOpen === best.isOpen && lastAt < best.lastAt))
        best = { key, lastAt, isOpen }
    }
    return best
  }
}

/** The runs of rankKeys. */
export function runsOfRanks(keys: Iterable<string>): ReadonlySet<string> {
  return new Set(Array.from(keys, (key) => key.slice(key.indexOf('@') + 1)))
}
