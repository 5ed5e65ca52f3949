/** The agent's time as a screen knows it: the clocks of two machines need not agree, and either may be set. */
import type { StreamEvent } from '../kinds.ts'

/** What is measured live is told within this time; where that seems not to be so, a clock was set. */
const MOST_LAG_MS = 10_000

export class AgentClock {
  readonly #own: () => number
  /** null: this is the clock that everything is measured by. */
  #offsetMs: number | null = null

  constructor(own: () => number) {
    this.#own = own
  }

  now(): number {
    return this.#own() + (this.#offsetMs ?? 0)
  }

  /** `at`: what the agent says the time is. */
  set(at: number): void {
    this.#offsetMs = at - this.#own()
  }

  /** Something that was measured just now has come. An event of the driver may be older than its news. */
  hear(event: StreamEvent): void {
    const at = event.type === 'tick' ? (event.tick.gpus[0]?.at ?? event.tick.host?.at) : undefined
    if (at === undefined || this.#offsetMs === null) return
    const lag = this.now() - at
    if (lag < 0 || lag > MOST_LAG_MS) this.set(at)
  }
}
