/** The training steps that went by while this page listened. The agent keeps no curve of simulated and replayed runs: this is theirs. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { BoundedMap } from '../../../src/core/bounded-map.ts'
import type { TrainingStep } from '../../../src/core/model.ts'
import { onEvent, revived } from './store.ts'

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

  of(run: string, rank: number): readonly TrainingStep[] {
    return this.#kept.get(rankKey(run, rank))?.steps ?? []
  }

  /** Ascending. */
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

const latest = signal<ReadonlyMap<string, TrainingStep>>(new Map())
/** The latest step of each rank, by rankKey. */
export const latestOfRanks: ReadonlySignal<ReadonlyMap<string, TrainingStep>> = latest

onEvent((event) => {
  if (event.type !== 'steps') return
  const next = new Map(latest.value)
  for (const given of event.steps) {
    const step = revived(given)
    stepLog.add(step)
    const key = rankKey(step.run, step.rank)
    next.delete(key)
    next.set(key, step)
  }
  if (next.size > MOST_RANKS) for (const key of [...next.keys()].slice(0, next.size - MOST_RANKS)) next.delete(key)
  latest.value = next
})
