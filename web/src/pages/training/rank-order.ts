/** Ranks side by side: which of them hold the others up. */
import type { Finding, Reading } from '../../../../src/core/model.ts'
import type { RankRow } from '../../answers.ts'
import { formatPercent } from '../../words.ts'

export interface JudgedRank extends RankRow {
  /** Of about the last twenty steps where the agent has them, else of all. */
  readonly stepSeconds: Reading
  /** 0–1, of the slowest. */
  readonly share: number
  /** Why it counts as a straggler; null when it keeps up. */
  readonly straggles: string | null
}

/** Slower than this against the others' median counts as straggling. */
const SLOW = 0.8
const MOST_SHOWN = 64

export type RankOrder = 'rank' | 'slowest'

export function judgedRanks(ranks: readonly RankRow[], findings: readonly Finding[]): readonly JudgedRank[] {
  const found = new Map(
    findings.filter(({ detector, state }) => detector === 'straggler' && state === 'active').map((one) => [one.subject.rank, one]),
  )
  const seconds = ranks.map(({ recentStepSeconds, meanStepSeconds }) => recentStepSeconds ?? meanStepSeconds)
  const slowest = seconds.reduce<number>((most, value) => Math.max(most, value ?? 0), 0)
  return ranks.map((rank, index) => {
    const stepSeconds = seconds[index] ?? null
    const isSlow = rank.relativeSpeed !== null && rank.relativeSpeed < SLOW
    const straggles =
      found.get(rank.rank)?.message ?? (isSlow ? `${formatPercent(1 / (rank.relativeSpeed || 1) - 1)} slower than the others` : null)
    return { ...rank, stepSeconds, share: stepSeconds === null || slowest === 0 ? 0 : stepSeconds / slowest, straggles }
  })
}

/** A list that can be read: of very many ranks the slowest, and how many are left out. */
export function shownRanks(
  ranks: readonly JudgedRank[],
  order: RankOrder,
): { readonly rows: readonly JudgedRank[]; readonly leftOut: number } {
  const slowestFirst = [...ranks].sort(
    (a, b) => Number(b.straggles !== null) - Number(a.straggles !== null) || (b.stepSeconds ?? 0) - (a.stepSeconds ?? 0) || a.rank - b.rank,
  )
  const rows = slowestFirst.slice(0, MOST_SHOWN)
  if (order === 'rank') rows.sort((a, b) => a.rank - b.rank)
  return { rows, leftOut: ranks.length - rows.length }
}
