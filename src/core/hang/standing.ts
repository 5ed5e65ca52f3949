/** A rank of a run that stands still, as far as it is known. */
import type { Reading } from '../model.ts'
import type { RankStacks } from './rank-stacks.ts'
import { placeOf, type StackPlace } from './stack-place.ts'

export interface RankView {
  readonly rank: number
  /** Label of its GPU; null: unknown. */
  readonly gpu: string | null
  /** null: nothing is known of it. */
  readonly stacks: RankStacks | null
  /** Its process has ended. */
  readonly isGone: boolean
}

export interface Standing extends RankView {
  /** null: it did not say. */
  readonly at: StackPlace | null
  /** It waits for other ranks. */
  readonly waits: boolean
}

/** In order of their ranks. */
export function standingsOf(ranks: readonly RankView[], worldSize: Reading): readonly Standing[] {
  const isAlone = Math.max(ranks.length, worldSize ?? 1) <= 1
  return ranks
    .toSorted((a, b) => a.rank - b.rank)
    .map((view) => {
      const { stacks, isGone } = view
      const at = stacks === null || stacks.from === 'proc' || stacks.reason !== null ? null : placeOf(stacks)
      const isOpen = stacks?.collectives.some(({ pending }) => pending !== null) ?? false
      // Gradients are exchanged inside the backward pass, below Python. Where a recorder says that nothing is open, it computes.
      const isBackward = at?.doing === 'backward' && (stacks?.collectives.length ?? 0) === 0
      const waits = !isGone && !isAlone && (isOpen || at?.doing === 'collective' || isBackward)
      return { ...view, at, waits }
    })
}
