/**
 * A rank that is slower than its peers. All wait for the slowest, so step times are alike: the time without waiting is compared. Where the
 * wait is not measured by itself it is part of the backward, which ends on all ranks together and is shortest on the one that came last.
 */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import type { Finding, TrainingStep } from '../core/model.ts'
import { hasGpuClock, type PhaseSeconds, phasesOf } from '../core/step-phases.ts'
import { STEP_TIME_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import { subjectOfRun, type WatchedRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface Rank {
  readonly rank: number
  readonly stage: number
  steps: number
  /** Usual log ratio to the peers, and its variance. */
  mean: number
  variance: number
  cusum: number
  /** The last log ratios. */
  recent: number[]
  open: boolean
  /** Normal steps in a row. */
  calm: number
}

interface RankTime {
  readonly rank: number
  readonly seconds: number
  readonly phases: PhaseSeconds | null
}

interface Round {
  readonly step: number
  readonly times: RankTime[]
}

interface RunRanks {
  ranks: Rank[]
  /** Steps that not every rank has reported yet, oldest first. */
  rounds: Round[]
  /** Phases are by the GPU's clock: steps without it say less. */
  byGpu: boolean
  /** Findings of earlier are open; their ranks have to keep up before they end. */
  isOpen: boolean
}

const RANK_CAP = 1024
const ROUND_CAP = 8
const CALM_STEPS = 20
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

export const straggler: DetectorKind<Thresholds<'straggler'>> = {
  name: 'straggler',
  about: 'One rank of a run is slower than its peers, and all of them wait for it.',
  severities: ['warning'],
  inputs: ['step', 'run', 'gpu'],
  charts: [STEP_TIME_CHART],
  defaults: THRESHOLDS.straggler,
  create: (options, maxRuns) =>
    watchRuns<RunRanks>(
      'straggler',
      {
        leaderOnly: false,
        initial: (isOpen) => ({ ranks: [], rounds: [], byGpu: false, isOpen }),
        rewind(run) {
          run.state.rounds = []
          return NO_FINDINGS
        },
        step(run, step, book) {
          const { stepSeconds, rank } = step
          if (stepSeconds === null || !(stepSeconds > 0) || !Number.isFinite(stepSeconds) || !enlist(run.state, step)) return NO_FINDINGS
          const byGpu = hasGpuClock(step.phaseSeconds)
          if (byGpu && !run.state.byGpu) {
            run.state.byGpu = true
            run.state.rounds = []
          }
          if (byGpu !== run.state.byGpu) return NO_FINDINGS
          const round = roundOf(run.state, step.step)
          if (round === null || round.times.some((entry) => entry.rank === rank)) return NO_FINDINGS
          round.times.push({ rank, seconds: stepSeconds, phases: phasesOf(step) })
          if (round.times.length < run.state.ranks.length || run.state.ranks.length < 2) return NO_FINDINGS
          run.state.rounds = run.state.rounds.filter((one) => one !== round)
          return compare(run, round, step.at, book, options)
        },
      },
      maxRuns,
    ),
}

/** How long each rank worked, without waiting for the others. */
function workSeconds(times: readonly RankTime[]): Map<number, number> {
  const work = (waitOf: (time: RankTime) => number) =>
    new Map(times.map((time) => [time.rank, Math.max(time.seconds - waitOf(time), time.seconds * 0.01)]))
  if (times.some(({ phases }) => phases?.sync !== undefined)) return work(({ phases }) => phases?.sync ?? 0)
  const seconds = times.map((time) => time.seconds)
  const [shortest, longest] = [Math.min(...seconds), Math.max(...seconds)]
  const backwards = times.map(({ phases }) => phases?.backward ?? Number.NaN)
  const least = Math.min(...backwards)
  // NaN where a rank does not measure it.
  if (!(least >= 0) || longest - shortest > IN_STEP_RATIO * shortest) return work(() => 0)
  return work(({ phases }) => (phases?.backward ?? least) - least)
}

/** What most of the difference to the others is spent on; null: no phase explains it. */
function causeOf(own: RankTime, peers: readonly RankTime[], difference: number): string | null {
  if (own.phases === null || !(difference > 0)) return null
  for (const [phase, words] of Object.entries(OWN_PHASES)) {
    const others = peers.map(({ phases }) => phases?.[phase] ?? 0).sort((a, b) => a - b)
    const more = (own.phases[phase] ?? 0) - (others[others.length >> 1] ?? 0)
    if (more >= CAUSE_RATIO * difference) return words
  }
  return null
}

/** False when there are more ranks than are followed. */
function enlist(state: RunRanks, step: TrainingStep): boolean {
  for (const one of state.ranks) if (one.rank === step.rank) return true
  if (state.ranks.length >= RANK_CAP) return false
  const stage = step.custom?.pipeline_stage ?? 0
  state.ranks.push({ rank: step.rank, stage, steps: 0, mean: 0, variance: 0, cusum: 0, recent: [], open: state.isOpen, calm: 0 })
  return true
}

function roundOf(state: RunRanks, step: number): Round | null {
  for (const round of state.rounds) if (round.step === step) return round
  const oldest = state.rounds[0]
  if (oldest && state.rounds.length >= ROUND_CAP) {
    if (step < oldest.step) return null
    state.rounds.shift()
  }
  const round: Round = { step, times: [] }
  state.rounds.push(round)
  return round
}

function compare(
  run: WatchedRun<RunRanks>,
  round: Round,
  at: number,
  book: FindingBook,
  options: Thresholds<'straggler'>,
): readonly Finding[] {
  const timeOf = new Map(round.times.map((time) => [time.rank, time]))
  const byStage = new Map<number, { ranks: Rank[]; times: RankTime[] }>()
  for (const rank of run.state.ranks) {
    const time = timeOf.get(rank.rank)
    if (!time) continue
    const stage = byStage.get(rank.stage) ?? { ranks: [], times: [] }
    stage.ranks.push(rank)
    stage.times.push(time)
    byStage.set(rank.stage, stage)
  }
  let findings: readonly Finding[] = NO_FINDINGS
  for (const { ranks, times } of byStage.values()) {
    if (ranks.length < 2) continue
    const work = workSeconds(times)
    const sorted = [...work.values()].sort((a, b) => a - b)
    ranks.forEach((rank, index) => {
      const own = work.get(rank.rank) ?? 0
      const peer = medianWithout(sorted, own)
      const time = times[index]
      const cause = () =>
        time
          ? causeOf(
              time,
              times.filter((one) => one !== time),
              own - peer,
            )
          : null
      findings = both(findings, weigh(run, rank, own, peer, ranks.length, round.step, at, book, options, cause))
    })
  }
  return findings
}

/** The median of a sorted list as if one occurrence of a value were not in it. */
function medianWithout(sorted: readonly number[], value: number): number {
  const skip = sorted.indexOf(value)
  const count = sorted.length - 1
  const pick = (index: number) => sorted[index >= skip ? index + 1 : index] ?? value
  const half = count >> 1
  return count % 2 === 1 ? pick(half) : (pick(half - 1) + pick(half)) / 2
}

function weigh(
  run: WatchedRun<RunRanks>,
  rank: Rank,
  ownSeconds: number,
  peerSeconds: number,
  peers: number,
  step: number,
  at: number,
  book: FindingBook,
  options: Thresholds<'straggler'>,
  causeOfIt: () => string | null,
): readonly Finding[] {
  const raw = Math.log(ownSeconds / peerSeconds)
  const clipped = Math.max(-options.clip, Math.min(options.clip, raw))
  rank.recent.push(clipped)
  if (rank.recent.length > options.meanSteps) rank.recent.shift()
  rank.steps++
  const learning = rank.steps <= options.baselineSteps
  const sigma = Math.sqrt(rank.variance)
  if (learning) {
    const weight = 1 / rank.steps
    rank.variance += weight * ((clipped - rank.mean) ** 2 - rank.variance) * (rank.steps === 1 ? 0 : 1)
    rank.mean += weight * (clipped - rank.mean)
  } else if (!rank.open) {
    rank.cusum = Math.max(0, rank.cusum + clipped - rank.mean - Math.max(options.cusumSlack, 0.5 * sigma))
    rank.mean += (clipped - rank.mean) / 500
  }
  let sum = 0
  for (const one of rank.recent) sum += one
  const mean = sum / rank.recent.length
  // Of two ranks one is always slower: only a lasting difference counts.
  const changed = peers > 2 && rank.cusum > Math.max(options.cusumLimit, options.cusumSigmas * sigma)
  const slow = rank.recent.length >= options.meanSteps && mean > Math.log(options.ratio)
  const subject = subjectOfRun(run.id, rank.rank)
  if (!changed && !slow) {
    rank.calm++
    if (!rank.open || rank.calm < CALM_STEPS) return NO_FINDINGS
    rank.open = false
    return book.resolve(book.key(subject), at, `Rank ${rank.rank} of run ${run.id} keeps up with the others again.`)
  }
  rank.calm = 0
  rank.open = true
  rank.cusum = 0
  if (!book.due(book.key(subject), at, 'warning')) return NO_FINDINGS
  const cause = causeOfIt()
  return book.raise(subject, at, {
    severity: 'warning',
    message: `Rank ${rank.rank} of run ${run.id} is slow: ${formatDuration(ownSeconds * 1000)} for step ${step}, ${formatPercent(ownSeconds / peerSeconds - 1)} more than the median of its ${peers - 1} peers${cause === null ? '' : `, most of it ${cause}`}.`,
    evidence: {
      step,
      step_seconds: evidenceNumber(ownSeconds),
      peers_median_seconds: evidenceNumber(peerSeconds),
      mean_ratio: evidenceNumber(Math.exp(mean)),
      usual_ratio: evidenceNumber(Math.exp(rank.mean)),
      peers: peers - 1,
      ...(cause === null ? {} : { cause }),
    },
    confidence: changed && slow ? 0.95 : 0.8,
    advice: ['All ranks wait for this one. Check its GPU for heat, throttling or a second process, and its host for load or a slow disk.'],
  })
}
