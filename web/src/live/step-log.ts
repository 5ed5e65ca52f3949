/** The training steps that went by while this page listened. The agent keeps no curve of replayed runs: this is theirs. */
import { BoundedMap } from '../../../src/core/bounded-map.ts'
import type { TrainingStep } from '../../../src/core/model.ts'
import { onEvent } from './store.ts'

interface Kept {
  steps: TrainingStep[]
  stride: number
  seen: number
}

const MOST_RANKS = 64
const MOST_STEPS = 1024

export function rankKey(run: string, rank: number): string {
  return `${rank}@${run}`
}

/** Bounded: every step at first, then every second, fourth … of them; what is not finite stays. */
export class StepLog {
  readonly #kept = new BoundedMap<string, Kept>(MOST_RANKS, { isRenewed: true })

  add(step: TrainingStep): void {
    const key = rankKey(step.run, step.rank)
    const kept = this.#kept.get(key) ?? { steps: [], stride: 1, seen: 0 }
    // Heard of most recently: last to be forgotten.
    this.#kept.set(key, kept)
    if (kept.seen++ % kept.stride !== 0 && !isOdd(step)) return
    kept.steps.push(step)
    if (kept.steps.length < MOST_STEPS) return
    kept.stride *= 2
    const keepsOdd = kept.steps.filter(isOdd).length < MOST_STEPS / 4
    kept.steps = kept.steps.filter((one, index) => index % 2 === 0 || (keepsOdd && isOdd(one)))
  }

  clear(): void {
    this.#kept.clear()
  }

  of(run: string, rank: number): readonly TrainingStep[] {
    return this.#kept.get(rankKey(run, rank))?.steps ?? []
  }

  ranksOf(run: string): readonly number[] {
    return [...this.#kept.keys()]
      .filter((key) => key.endsWith(`@${run}`) && key.indexOf('@') === key.length - run.length - 1)
      .map((key) => Number.parseInt(key, 10))
      .sort((a, b) => a - b)
  }
}

function isOdd({ loss, gradientNorm }: TrainingStep): boolean {
  return (loss !== null && !Number.isFinite(loss)) || (gradientNorm !== null && !Number.isFinite(gradientNorm))
}

export const stepLog = new StepLog()

onEvent((event) => {
  if (event.type === 'steps') for (const step of event.steps) stepLog.add(step)
  else if (event.type === 'restart') stepLog.clear()
})
