/** Where closer looks come from: the agent. A file on disk has what it carries. */
import type { BandColumns, BandKind, MomentPicture } from '../../../src/core/memory/snapshot-picture.ts'

export interface CloserLook {
  columns(kind: BandKind, from: number, to: number, count: number, signal: AbortSignal): Promise<BandColumns>
  moment(index: number, signal: AbortSignal): Promise<MomentPicture>
}

/** Asks when nothing else was wanted for a while; what is not wanted anymore is given up. */
export class PatientAsk {
  readonly #waitMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #asked = new AbortController()

  constructor(waitMs = 120) {
    this.#waitMs = waitMs
  }

  /** What goes wrong is left out: the coarser picture stays. */
  ask<Answer>(
    question: (signal: AbortSignal) => Promise<Answer>,
    onAnswer: (answer: Answer) => void,
    onFault: () => void = () => undefined,
  ): void {
    this.cancel()
    const { signal } = this.#asked
    this.#timer = setTimeout(() => {
      question(signal).then(
        (answer) => signal.aborted || onAnswer(answer),
        () => signal.aborted || onFault(),
      )
    }, this.#waitMs)
  }

  cancel(): void {
    clearTimeout(this.#timer)
    this.#asked.abort()
    this.#asked = new AbortController()
  }
}
