/** A rank that is slower than its peers. All wait for the slowest, so step times are alike: the time without waiting is compared. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import { medianAbsoluteDeviation } from '../core/memory/statistics.ts'
import type { Finding, TrainingStep } from '../core/model.ts'
import { groupOf } from '../core/rank-groups.ts'
import { hasGpuClock } from '../core/step-phases.ts'
import { STEP_TIME_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import { RankMachines } from './rank-machine.ts'
import { causeOf, evenTimes, type RankTime, rankTime, workSeconds } from './rank-work.ts'
import { subjectOfRun, type WatchedRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface Rank {
  readonly rank: number
  /** Only ranks of one group are compared. */
  group: string
  steps: number
  /** Usual log ratio to the peers, and its variance. */
  mean: number
  variance: number
  /** Of a log ratio and the one before. */
  covariance: number
  /** The newest log ratio of which these are made. */
  last: number
  cusum: number
  /** The last log ratios. */
  recent: number[]
  open: boolean
  /** Normal steps in a row. */
  calm: number
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
/** A CUSUM of noise of variance σ² passes 20 σ² ÷ (2 slack) by chance about once in 10⁹ steps (e^−20 a step). */
const SURE = 20

export const straggler: DetectorKind<Thresholds<'straggler'>> = {
  name: 'straggler',
  about: 'One rank of a run is slower than its peers, and all of them wait for it.',
  severities: ['warning'],
  inputs: ['step', 'run', 'gpu', 'device', 'host'],
  charts: [STEP_TIME_CHART],
  defaults: THRESHOLDS.straggler,
  create(options, maxRuns) {
    const machines = new RankMachines()
    const watched = watchRuns<RunRanks>(
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
          round.times.push(rankTime(step, stepSeconds))
          if (round.times.length < run.state.ranks.length || run.state.ranks.length < 2) return NO_FINDINGS
          run.state.rounds = run.state.rounds.filter((one) => one !== round)
          return compare(run, round, step.at, book, options, machines)
        },
      },
      maxRuns,
    )
    return {
      ...watched,
      accept(input) {
        machines.note(input)
        return watched.accept(input)
      },
      snapshot: () => ({ ...(watched.snapshot() as object), machines: machines.snapshot() }),
      restore(state) {
        watched.restore(state)
        machines.restore((state as { machines?: ReturnType<RankMachines['snapshot']> }).machines)
      },
    }
  },
}

/** False when there are more ranks than are followed. */
function enlist(state: RunRanks, step: TrainingStep): boolean {
  const group = groupOf(step)
  for (const one of state.ranks)
    if (one.rank === step.rank) {
      one.group = group ?? one.group
      return true
    }
  if (state.ranks.length >= RANK_CAP) return false
  state.ranks.push({
    rank: step.rank,
    group: group ?? '',
    steps: 0,
    mean: 0,
    variance: 0,
    covariance: 0,
    last: 0,
    cusum: 0,
    recent: [],
    open: state.isOpen,
    calm: 0,
  })
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
  machines: RankMachines,
): readonly Finding[] {
  const timeOf = new Map(round.times.map((time) => [time.rank, time]))
  const stages = new Map<string, Stage>()
  for (const rank of run.state.ranks) {
    const stage: Stage = stages.get(rank.group) ?? { times: [], work: new Map(), sorted: [], means: [], variance: 0, covariance: 0 }
    const time = timeOf.get(rank.rank)
    if (time) stage.times.push(time)
    stage.means.push(meanOf(rank.recent))
    stage.variance += rank.variance
    stage.covariance += rank.covariance
    stages.set(rank.group, stage)
  }
  for (const stage of stages.values()) {
    stage.times = evenTimes(stage.times)
    stage.work = workSeconds(stage.times)
    stage.sorted = [...stage.work.values()].sort((a, b) => a - b)
  }
  let findings: readonly Finding[] = NO_FINDINGS
  for (const rank of run.state.ranks) {
    const stage = stages.get(rank.group)
    const own = stage?.work.get(rank.rank)
    if (stage === undefined || own === undefined || stage.sorted.length < 2) continue
    findings = both(findings, weigh(run, rank, own, stage, round.step, at, book, options, machines))
  }
  return findings
}

/** Ranks that do the same work, at one step. */
interface Stage {
  times: RankTime[]
  /** Seconds without waiting, by rank. */
  work: ReadonlyMap<number, number>
  /** The same, ascending. */
  sorted: readonly number[]
  /** Their usual log ratios of late. */
  readonly means: number[]
  /** Sums over the ranks: what one of them does, the others may do later. */
  variance: number
  covariance: number
}

/** Variance of a sum of many steps, per step: more than that of one step where slow steps follow one another. */
function noiseOf({ variance, covariance, sorted }: Stage): number {
  const correlation = variance > 0 ? Math.min(0.9, Math.max(0, covariance / variance)) : 0
  return ((variance / sorted.length) * (1 + correlation)) / (1 - correlation)
}

function meanOf(values: readonly number[]): number {
  let sum = 0
  for (const one of values) sum += one
  return values.length === 0 ? 0 : sum / values.length
}

/** Many ranks that are slow alike are a stage of a pipeline or other hardware, not a rank that holds the others up. */
function isAlone(mean: number, means: readonly number[]): boolean {
  let alike = 0
  for (const one of means) if (one >= 0.5 * mean) alike++
  return alike <= Math.max(1, means.length / 8)
}

/** The median of a sorted list as if one occurrence of a value were not in it. */
function medianWithout(sorted: readonly number[], value: number): number {
  const skip = sorted.indexOf(value)
  const count = sorted.length - 1
  const pick = (index: number) => sorted[index >= skip ? index + 1 : index] ?? value
  const half = count >> 1
  return count % 2 === 1 ? pick(half) : (pick(half - 1) + pick(half)) / 2
}

/** Ranks that differ anyway, as the stages of a pipeline do, need a larger difference. */
function slowFrom({ means }: Stage, noise: number, options: Thresholds<'straggler'>): number {
  return Math.log(options.ratio) + 3 * Math.max(Math.sqrt(noise / options.meanSteps), means.length > 2 ? medianAbsoluteDeviation(means) : 0)
}

/** What is usual for a rank is learned from steps that are a while ago: a rank that becomes slow must not hide itself. */
function learn(rank: Rank, old: number, options: Thresholds<'straggler'>): void {
  const known = rank.steps - options.meanSteps
  if (rank.open && rank.steps > options.baselineSteps) return
  const weight = 1 / Math.min(known, options.baselineSteps)
  rank.covariance += weight * ((old - rank.mean) * (rank.last - rank.mean) - rank.covariance)
  if (known > 1) rank.variance += weight * ((old - rank.mean) ** 2 - rank.variance)
  rank.mean += (rank.steps <= options.baselineSteps ? weight : 1 / 500) * (old - rank.mean)
  rank.last = old
}

function weigh(
  run: WatchedRun<RunRanks>,
  rank: Rank,
  ownSeconds: number,
  stage: Stage,
  step: number,
  at: number,
  book: FindingBook,
  options: Thresholds<'straggler'>,
  machines: RankMachines,
): readonly Finding[] {
  const peers = stage.sorted.length
  const peerSeconds = medianWithout(stage.sorted, ownSeconds)
  const raw = Math.log(ownSeconds / peerSeconds)
  const clipped = Math.max(-options.clip, Math.min(options.clip, raw))
  rank.recent.push(clipped)
  rank.steps++
  if (rank.recent.length > options.meanSteps) learn(rank, rank.recent.shift() ?? 0, options)
  const noise = noiseOf(stage)
  if (rank.steps > options.baselineSteps && !rank.open)
    rank.cusum = Math.max(0, rank.cusum + Math.min(clipped - rank.mean, options.cusumClip) - options.cusumSlack)
  const mean = meanOf(rank.recent)
  // Of two ranks one is always slower: only a lasting difference counts.
  const changed = peers > 2 && rank.cusum > Math.max(options.cusumLimit, (SURE * noise) / (2 * options.cusumSlack))
  const slow = rank.recent.length >= options.meanSteps && mean > slowFrom(stage, noise, options) && isAlone(mean, stage.means)
  const place = machines.placeOf(run.id, rank.rank)
  const subject = { ...subjectOfRun(run.id, rank.rank), host: place?.host ?? null, gpuIndex: place?.gpuIndex ?? null }
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
  const cause = causeOf(rank.rank, stage.times, ownSeconds - peerSeconds)
  const reason = machines.reasonOf(run.id, rank.rank, at)
  return book.raise(subject, at, {
    severity: 'warning',
    message: `Rank ${rank.rank} of run ${run.id}${place === null ? '' : ` (${place.words})`} is slow: ${formatDuration(ownSeconds * 1000)} for step ${step}, ${formatPercent(ownSeconds / peerSeconds - 1)} more than the median of its ${peers - 1} peers${cause === null ? '' : `, most of it ${cause}`}${reason === null ? '' : `; likely because ${reason}`}.`,
    evidence: {
      step,
      step_seconds: evidenceNumber(ownSeconds),
      peers_median_seconds: evidenceNumber(peerSeconds),
      mean_ratio: evidenceNumber(Math.exp(mean)),
      usual_ratio: evidenceNumber(Math.exp(rank.mean)),
      peers: peers - 1,
      ...(cause === null ? {} : { cause }),
      ...(reason === null ? {} : { reason }),
    },
    confidence: changed && slow ? 0.95 : 0.8,
    advice: ['All ranks wait for this one. Check its GPU for heat, throttling or a second process, and its host for load or a slow disk.'],
  })
}
