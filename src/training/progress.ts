/** How far a run has come: what was received from each rank, the figures so far, and its curve. */
import { numberOf } from '../core/json-text.ts'
import type { Reading, Run, TrainingStep } from '../core/model.ts'
import { TOKENS_PER_SECOND } from '../core/rank-groups.ts'
import { type RunTime, type SavedTime, TimeAccount } from '../core/run-time.ts'
import type { PhaseShare } from '../core/step-phases.ts'
import { MOST_CUSTOM } from './curve.ts'
import { LayerHistory } from './layer-history.ts'
import { RankCurves } from './rank-curves.ts'
import {
  amountsOf,
  countOfRank,
  hasReceived,
  newRank,
  type RankProgress,
  receive,
  restoredRank,
  type SavedRank,
  savedRank,
} from './rank-progress.ts'
import type { ReceivedStep } from './step-line.ts'

const MOST_RANKS = 16_384

interface Mean {
  sum: number
  count: number
}

/** What a summary says of the training itself; of the lowest rank where ranks would differ. */
export interface TrainingFigures {
  readonly steps: number
  readonly lastStep: Reading
  readonly firstStepAt: Reading
  readonly lastStepAt: Reading
  readonly epoch: Reading
  readonly loss: Reading
  readonly bestLoss: Reading
  readonly bestLossStep: Reading
  readonly learningRate: Reading
  readonly gradientNorm: Reading
  readonly throughputPerSecond: Reading
  readonly meanThroughputPerSecond: Reading
  readonly tokensPerSecond: Reading
  readonly meanTokensPerSecond: Reading
  /** Of all ranks; null where they are not counted. */
  readonly samples: Reading
  readonly tokens: Reading
  readonly meanStepSeconds: Reading
  /** What the time of the steps went to; empty where no step had phases. */
  readonly phaseShares: readonly PhaseShare[]
  readonly memoryAllocatedBytes: Reading
  readonly memoryReservedBytes: Reading
  readonly memoryPeakAllocatedBytes: Reading
  readonly memoryPeakReservedBytes: Reading
  readonly allocRetries: Reading
  readonly oomCount: Reading
  readonly nonFiniteSteps: number
  readonly custom: Readonly<Record<string, number>>
}

const LATEST = [
  'epoch',
  'loss',
  'learningRate',
  'gradientNorm',
  'throughputPerSecond',
  'memoryAllocatedBytes',
  'memoryReservedBytes',
  'allocRetries',
  'oomCount',
] as const satisfies readonly (keyof TrainingStep)[]

type Latest = Record<(typeof LATEST)[number], Reading>

export class Progress {
  readonly ranks = new Map<number, RankProgress>()
  readonly curves = new RankCurves()
  /** In a file of its own: it is large, and changes seldom. */
  readonly layers = new LayerHistory()
  readonly #custom = new Map<string, number>()
  readonly #latest: Latest = Object.fromEntries(LATEST.map((field) => [field, null])) as Latest
  readonly #throughput: Mean = { sum: 0, count: 0 }
  readonly #seconds: Mean = { sum: 0, count: 0 }
  #time = new TimeAccount()
  #leader = Number.POSITIVE_INFINITY
  #steps = 0
  #firstStepAt: Reading = null
  #lastStepAt: Reading = null
  #lastStep: Reading = null
  #bestLoss: Reading = null
  #bestLossStep: Reading = null
  #peakAllocated: Reading = null
  #peakReserved: Reading = null
  #nonFinite = 0

  /** The step without custom metrics above the run's limit (their names go to `ignored`), or why it does not count. */
  accept({ seq, step, sender, pid, localRank, layers }: ReceivedStep, ignored: Set<string>): TrainingStep | 'duplicate' | 'too_many_ranks' {
    let rank = this.ranks.get(step.rank)
    if (!rank) {
      if (this.ranks.size >= MOST_RANKS) return 'too_many_ranks'
      rank = newRank(step)
      this.ranks.set(step.rank, rank)
    }
    if (!receive(rank, sender, seq)) return 'duplicate'
    const isNewProcess = rank.sender !== null && rank.sender !== sender && step.at >= rank.lastAt
    countOfRank(rank, step, sender, pid, localRank)
    if (layers !== null) this.layers.add(step.rank, step.step, step.at, layers)
    if (step.nonFinite) this.layers.noteBroken(step.rank, step.step, step.nonFinite)
    const counted = this.#withinBounds(step, ignored)
    this.#count(counted, isNewProcess)
    return counted
  }

  has({ seq, step, sender }: ReceivedStep): boolean {
    const rank = this.ranks.get(step.rank)
    return rank !== undefined && hasReceived(rank, sender, seq)
  }

  lastSeqs(): Record<string, number> {
    return Object.fromEntries(Array.from(this.ranks, ([rank, { lastSeq }]) => [String(rank), lastSeq]))
  }

  figures(): TrainingFigures {
    const leader = this.ranks.get(this.#leader)
    return {
      steps: this.#steps,
      lastStep: this.#lastStep,
      firstStepAt: this.#firstStepAt,
      lastStepAt: this.#lastStepAt,
      ...this.#latest,
      bestLoss: this.#bestLoss,
      bestLossStep: this.#bestLossStep,
      meanThroughputPerSecond: pace(leader?.samples, leader?.countedSeconds) ?? mean(this.#throughput),
      meanStepSeconds: mean(this.#seconds),
      tokensPerSecond: this.#custom.get(TOKENS_PER_SECOND) ?? null,
      meanTokensPerSecond: pace(leader?.tokens, leader?.countedSeconds),
      ...amountsOf(this.ranks.values()),
      phaseShares: leader?.phases.shares() ?? [],
      memoryPeakAllocatedBytes: this.#peakAllocated,
      memoryPeakReservedBytes: this.#peakReserved,
      nonFiniteSteps: this.#nonFinite,
      custom: Object.fromEntries(this.#custom),
    }
  }

  /** What the wall time went to; `until` is its end, or now. */
  time({ startedAt, endedAt, outcome }: Pick<Run, 'startedAt' | 'endedAt' | 'outcome'>, now: number): RunTime {
    return this.#time.until(startedAt, endedAt ?? now, outcome !== 'success')
  }

  snapshot(): unknown {
    return {
      ranks: Array.from(this.ranks, ([rank, value]) => [rank, savedRank(value)]),
      figures: this.figures(),
      throughput: this.#throughput,
      seconds: this.#seconds,
      time: this.#time,
      leader: this.#leader,
      curves: this.curves,
    }
  }

  /** Takes what a snapshot holds and leaves the rest: an older or damaged file must not stop the start. */
  restore(saved: unknown): void {
    const { ranks, figures, throughput, seconds, time, leader, curves } = saved as Record<string, unknown>
    for (const [rank, value] of (ranks ?? []) as [number, SavedRank][]) this.ranks.set(rank, restoredRank(value))
    const known = (figures ?? {}) as Record<string, unknown>
    for (const field of LATEST) this.#latest[field] = numberOf(known[field])
    this.#steps = numberOf(known.steps) ?? 0
    this.#firstStepAt = numberOf(known.firstStepAt)
    this.#lastStepAt = numberOf(known.lastStepAt)
    this.#lastStep = numberOf(known.lastStep)
    this.#bestLoss = numberOf(known.bestLoss)
    this.#bestLossStep = numberOf(known.bestLossStep)
    this.#peakAllocated = numberOf(known.memoryPeakAllocatedBytes)
    this.#peakReserved = numberOf(known.memoryPeakReservedBytes)
    this.#nonFinite = numberOf(known.nonFiniteSteps) ?? 0
    for (const [name, value] of Object.entries((known.custom ?? {}) as object)) this.#custom.set(name, numberOf(value) ?? Number.NaN)
    Object.assign(this.#throughput, throughput)
    Object.assign(this.#seconds, seconds)
    this.#time = new TimeAccount(time as SavedTime | undefined)
    this.#leader = numberOf(leader) ?? Number.POSITIVE_INFINITY
    this.curves.restore(curves)
  }

  #withinBounds(step: TrainingStep, ignored: Set<string>): TrainingStep {
    const given = step.custom
    if (given === null) return step
    let kept: Record<string, number> | null = null
    for (const name in given) {
      if (this.#custom.has(name) || this.#custom.size < MOST_CUSTOM) this.#custom.set(name, given[name] ?? Number.NaN)
      else {
        kept ??= { ...given }
        delete kept[name]
        ignored.add(name)
      }
    }
    return kept === null ? step : { ...step, custom: Object.keys(kept).length === 0 ? null : kept }
  }

  #count(step: TrainingStep, isNewProcess: boolean): void {
    this.#steps++
    this.curves.add(step)
    this.#firstStepAt = Math.min(this.#firstStepAt ?? step.at, step.at)
    this.#peakAllocated = larger(this.#peakAllocated, step.memoryPeakAllocatedBytes)
    this.#peakReserved = larger(this.#peakReserved, step.memoryPeakReservedBytes)
    const { loss, gradientNorm } = step
    if ((loss !== null && !Number.isFinite(loss)) || (gradientNorm !== null && !Number.isFinite(gradientNorm))) this.#nonFinite++
    if (step.rank > this.#leader) return
    if (step.rank < this.#leader) this.#time = new TimeAccount()
    this.#leader = step.rank
    add(this.#throughput, step.throughputPerSecond)
    add(this.#seconds, step.stepSeconds)
    this.#time.add(step, isNewProcess)
    if (loss !== null && Number.isFinite(loss) && (this.#bestLoss === null || loss < this.#bestLoss)) {
      this.#bestLoss = loss
      this.#bestLossStep = step.step
    }
    // Delayed steps are in the past.
    if (this.#lastStepAt !== null && step.at < this.#lastStepAt) return
    this.#lastStepAt = step.at
    this.#lastStep = step.step
    for (const field of LATEST) this.#latest[field] = step[field] ?? this.#latest[field]
  }
}

function add(mean: Mean, value: Reading): void {
  if (value === null || !Number.isFinite(value)) return
  mean.sum += value
  mean.count++
}

function larger(known: Reading, value: Reading): Reading {
  return value === null ? known : Math.max(known ?? 0, value)
}

/** Over the time of the steps: a mean of paces would count short steps as much as long ones. */
function pace(count: Reading | undefined, seconds: number | undefined): Reading {
  return count == null || !seconds ? null : count / seconds
}

function mean({ sum, count }: Mean): Reading {
  return count === 0 ? null : sum / count
}
