/** The agent's time as a screen knows it: clocks of two machines differ, and either may be set. */
import type { StreamEvent } from '../kinds.ts'

/** Live samples arrive within this time; otherwise a clock was set. */
const MOST_LAG_MS = 10_000

export class AgentClock {
  readonly #own: () => number
  /** null: this clock is the agent's. */
  #offsetMs: number | null = null

  constructor(own: () => number) {
    this.#own = own
  }

  now(): number {
    return this.#own() + (this.#offsetMs ?? 0)
  }

  /** `at`: the agent's time. */
  set(at: number): void {
    this.#offsetMs = at - this.#own()
  }

  /** Only samples count: a driver event may arrive late. */
  hear(event: StreamEvent): void {
    const at = event.type === 'tick' ? (event.tick.gpus[0]?.at ?? event.tick.host?.at) : undefined
    if (at === undefined || this.#offsetMs === null) return
    const lag = this.now() - at
    if (lag < 0 || lag > MOST_LAG_MS) this.set(at)
  }
}
