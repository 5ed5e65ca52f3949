/** The wall clock, which may be set at any moment, checked against a clock that only goes forward. */

/** Corrections below this are no jump: they change no age that anybody acts on. */
const JUMP_MS = 10_000

export interface ClockJump {
  /** The time before and after. */
  readonly from: number
  readonly at: number
}

export class WallClock {
  readonly #wall: () => number
  readonly #monotonicMs: () => number
  readonly #onJump: (jump: ClockJump) => void
  #offsetMs: number
  #jumpedMs = Number.NEGATIVE_INFINITY

  constructor(onJump: (jump: ClockJump) => void, wall: () => number = Date.now, monotonicMs: () => number = () => performance.now()) {
    this.#onJump = onJump
    this.#wall = wall
    this.#monotonicMs = monotonicMs
    this.#offsetMs = wall() - monotonicMs()
  }

  /** A jump is reported before the first new time is given out. */
  now(): number {
    const at = this.#wall()
    const nowMs = this.#monotonicMs()
    const byMs = at - nowMs - this.#offsetMs
    this.#offsetMs += byMs
    if (Math.abs(byMs) >= JUMP_MS) {
      this.#jumpedMs = nowMs
      this.#onJump({ from: Math.round(at - byMs), at })
    }
    return at
  }

  /** Infinity: it has never jumped. */
  sinceJumpMs(): number {
    this.now()
    return this.#monotonicMs() - this.#jumpedMs
  }
}

/** For so long after a jump, nothing is deleted or closed because of its age: many jumps are undone. */
export const MISTRUST_MS = 3_600_000
