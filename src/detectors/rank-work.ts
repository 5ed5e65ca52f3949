/** How long the ranks of a step worked without waiting for each other, and what one of them is slow in. */
import type { Reading, TrainingStep } from '../core/model.ts'
import { tokensPerSecond } from '../core/rank-groups.ts'
import { type PhaseSeconds, phasesOf } from '../core/step-phases.ts'

export interface RankTime {
  readonly rank: number
  readonly seconds: number
  readonly phases: PhaseSeconds | null
  /** Tokens or samples of the step, where the rank counts them; null: it does not. */
  readonly amount: Reading
}

/** Ranks whose steps differ by more than this do not wait for each other. */
const IN_STEP_RATIO = 0.1
/** Phases that a rank is slow in by itself, and the share of the difference that one must explain to be named. */
const OWN_PHASES: Readonly<Record<string, string>> = {
  data: 'waiting for data',
  copy: 'copying data to the GPU',
  forward: 'in the forward',
  optimizer: 'in the optimizer',
  logging: 'logging',
  evaluation: 'evaluating',
  checkpoint: 'saving checkpoints',
}
const CAUSE_RATIO = 0.6

/** Batches that differ by more than this take a different time. */
const UNEVEN_RATIO = 0.05
/** A count of tokens or samples is a whole number; a pace that somebody averaged gives none. */
const WHOLE_RATIO = 1e-4

export function rankTime(step: TrainingStep, seconds: number): RankTime {
  const pace = tokensPerSecond(step) ?? step.throughputPerSecond
  const amount = step.custom?.batch_size ?? (pace === null ? null : pace * seconds)
  const isCount = amount !== null && amount >= 1 && Math.abs(amount - Math.round(amount)) <= WHOLE_RATIO
  return { rank: step.rank, seconds, phases: phasesOf(step), amount: isCount ? Math.round(amount) : null }
}

/** Without ranks whose batch is larger or smaller than that of the others. */
export function evenTimes(times: RankTime[]): RankTime[] {
  const amounts = times.flatMap(({ amount }) => amount ?? [])
  if (amounts.length < times.length) return times
  amounts.sort((a, b) => a - b)
  const usual = amounts[amounts.length >> 1] ?? 0
  return times.filter(({ amount }) => Math.abs((amount ?? usual) - usual) <= UNEVEN_RATIO * usual)
}

/** By rank. Where the wait is not measured by itself it is part of the backward, which ends on all ranks together and is shortest on the last to come. */
export function workSeconds(times: readonly RankTime[]): Map<number, number> {
  const work = (waitOf: (time: RankTime) => number) =>
    new Map(times.map((time) => [time.rank, Math.max(time.seconds - waitOf(time), time.seconds * 0.01)]))
  if (times.some(({ phases }) => phases?.sync !== undefined)) return work(({ phases }) => phases?.sync ?? 0)
  const seconds = times.map((time) => time.seconds)
  const [shortest, longest] = [Math.min(...seconds), Math.max(...seconds)]
  // NaN where a rank does not measure it.
  const least = Math.min(...times.map(({ phases }) => phases?.backward ?? Number.NaN))
  if (!(least >= 0) || longest - shortest > IN_STEP_RATIO * shortest) return work(() => 0)
  return work(({ phases }) => (phases?.backward ?? least) - least)
}

/** What most of the difference to the others is spent on; null: no phase explains it. */
export function causeOf(rank: number, times: readonly RankTime[], differenceSeconds: number): string | null {
  const own = times.find((time) => time.rank === rank)?.phases ?? null
  if (own === null || !(differenceSeconds > 0)) return null
  const peers = times.filter((time) => time.rank !== rank)
  for (const [phase, words] of Object.entries(OWN_PHASES)) {
    const others = peers.map(({ phases }) => phases?.[phase] ?? 0).sort((a, b) => a - b)
    if ((own[phase] ?? 0) - (others[others.length >> 1] ?? 0) >= CAUSE_RATIO * differenceSeconds) return words
  }
  return null
}
