/** Reads the GPUs more often than configured while somebody asks for it, and goes back when the asker is done or silent. */
const SHORTEST_MS = 100
const MOST_ASKERS = 64

export interface SamplingPaceOptions {
  readonly ownMs: number
  readonly set: (intervalMs: number) => void
}

export class SamplingPace {
  readonly #options: SamplingPaceOptions
  readonly #askers = new Map<string, { readonly intervalMs: number; readonly timer: NodeJS.Timeout }>()

  constructor(options: SamplingPaceOptions) {
    this.#options = options
  }

  get ownMs(): number {
    return this.#options.ownMs
  }

  /** The same asker again replaces what it asked before. Returns how often is read now; null: too many ask. */
  ask(asker: string, intervalMs: number, forMs: number): number | null {
    if (!this.#askers.has(asker) && this.#askers.size >= MOST_ASKERS) return null
    clearTimeout(this.#askers.get(asker)?.timer)
    const timer = setTimeout(() => this.release(asker), forMs).unref()
    this.#askers.set(asker, { intervalMs: Math.max(SHORTEST_MS, intervalMs), timer })
    return this.#apply()
  }

  release(asker: string): number {
    clearTimeout(this.#askers.get(asker)?.timer)
    this.#askers.delete(asker)
    return this.#apply()
  }

  #apply(): number {
    const intervalMs = Math.min(this.#options.ownMs, ...[...this.#askers.values()].map((one) => one.intervalMs))
    this.#options.set(intervalMs)
    return intervalMs
  }
}
