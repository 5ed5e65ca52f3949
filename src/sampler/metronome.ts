/** One timer for all that recurs in the sampler process: what is due together costs one wake-up. */
import { performance } from 'node:perf_hooks'

export interface Beat {
  /** Monotonic milliseconds; Infinity: not for now. */
  readonly dueMs: number
  /** Who is read, so that a silence can be blamed on the right one; null for what cannot hang. */
  readonly source: string | null
  /** `next`: whose turn it is right after this one. Returns whether it was announced. */
  run(next: string | null, wasTold: boolean): boolean
}

/** Timers of Node count whole milliseconds: what is due a little later is done now rather than in a wake-up of its own. */
const TOGETHER_MS = 2

export class Metronome {
  readonly #beats: Beat[] = []
  #timer: NodeJS.Timeout | null = null
  #armedMs = Number.POSITIVE_INFINITY
  #isRunning = false

  add(beat: Beat): void {
    // What can hang comes first: it is announced by the one before it.
    const at = beat.source === null ? this.#beats.length : this.#beats.findLastIndex((one) => one.source !== null) + 1
    this.#beats.splice(at, 0, beat)
    this.arm()
  }

  remove(beat: Beat): void {
    const at = this.#beats.indexOf(beat)
    if (at >= 0) this.#beats.splice(at, 1)
  }

  /** To be called when a due time has changed. */
  arm(): void {
    if (this.#isRunning) return
    let dueMs = Number.POSITIVE_INFINITY
    for (const beat of this.#beats) if (beat.dueMs < dueMs) dueMs = beat.dueMs
    if (dueMs === this.#armedMs && this.#timer !== null) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#armedMs = dueMs
    this.#timer =
      dueMs === Number.POSITIVE_INFINITY ? null : setTimeout(() => this.#strike(), Math.max(0, Math.ceil(dueMs - performance.now())))
  }

  #strike(): void {
    this.#timer = null
    this.#isRunning = true
    const nowMs = performance.now() + TOGETHER_MS
    const due = this.#beats.filter((beat) => beat.dueMs <= nowMs)
    let wasTold = false
    for (let i = 0; i < due.length; i++) wasTold = due[i]?.run(due[i + 1]?.source ?? null, wasTold) ?? false
    this.#isRunning = false
    this.arm()
  }
}
