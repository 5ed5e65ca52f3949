/** Steps that were refused because they could not be stored: each is judged from memory once, and not again when it is sent again. */
import { BoundedMap } from '../core/bounded-map.ts'
import { MOST_RUNS } from '../core/detector-contract.ts'
import type { TrainingStep } from '../core/model.ts'
import { SeqRanges } from './seq-ranges.ts'
import { parseReceivedStep, type ReceivedStep } from './step-line.ts'

export class UnstoredSteps {
  /** By run, then by rank and sender. */
  readonly #judged = new BoundedMap<string, Map<string, SeqRanges>>(MOST_RUNS, { isRenewed: true })

  /** Those of a refused batch that are neither stored nor judged. */
  take(run: string, body: Buffer, receivedAt: number, isStored: (received: ReceivedStep) => boolean): readonly TrainingStep[] {
    const judged = this.#judged.get(run) ?? new Map<string, SeqRanges>()
    this.#judged.set(run, judged)
    const steps: TrainingStep[] = []
    for (const text of body.toString('utf8').split('\n')) {
      const received = text.trim() === '' ? '' : parseReceivedStep(text, run, receivedAt)
      if (typeof received === 'string' || isStored(received)) continue
      const key = keyOf(received)
      const ranges = judged.get(key) ?? new SeqRanges()
      judged.set(key, ranges)
      if (ranges.add(received.seq)) steps.push(received.step)
    }
    return steps
  }

  get isEmpty(): boolean {
    return this.#judged.size === 0
  }

  has(run: string, received: ReceivedStep): boolean {
    return this.#judged.get(run)?.get(keyOf(received))?.has(received.seq) ?? false
  }

  forget(run: string): void {
    this.#judged.delete(run)
  }
}

function keyOf({ step, sender }: ReceivedStep): string {
  return `${step.rank} ${sender}`
}
