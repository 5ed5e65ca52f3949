/** How far one rank of a run has come, and the ranks side by side. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Reading, TrainingStep } from '../core/model.ts'
import { type Amounts, addedTo } from '../core/model-work.ts'
import { PIPELINE_STAGE, TENSOR_RANK, tokensPerSecond } from '../core/rank-groups.ts'
import { type PhaseShare, PhaseSums, type SavedPhases } from '../core/step-phases.ts'
import { type SeqRange, SeqRanges } from './seq-ranges.ts'
import type { Sender } from './step-line.ts'

const MOST_SENDERS = 64
/** Weight of the newest step in a rank's recent step time: about the last twenty count. */
const RECENT = 0.1

export interface RankProgress {
  /** By sender: one that restarts under the same run counts from 1 again. */
  readonly received: BoundedMap<Sender, SeqRanges>
  lastSeq: number
  steps: number
  lastStep: number
  lastAt: number
  pid: Reading
  localRank: Reading
  secondsSum: number
  secondsCount: number
  lastStepSeconds: Reading
  recentStepSeconds: Reading
  memoryAllocatedBytes: Reading
  /** Who sent the last step. */
  sender: Sender | null
  /** So far; null: the rank does not count them. */
  samples: Reading
  tokens: Reading
  /** Of the steps in which they were counted. */
  countedSeconds: number
  pipelineStage: Reading
  tensorRank: Reading
  readonly phases: PhaseSums
}

type Received = readonly (readonly [Sender, readonly SeqRange[]])[]
export type SavedRank = Omit<RankProgress, 'received' | 'phases'> & { readonly received: Received; readonly phases?: SavedPhases }

/** One rank as it is shown next to the others. */
export interface RankRow {
  readonly rank: number
  readonly pid: Reading
  readonly localRank: Reading
  readonly lastStep: number
  readonly lastAt: number
  readonly steps: number
  readonly meanStepSeconds: Reading
  readonly lastStepSeconds: Reading
  readonly recentStepSeconds: Reading
  readonly memoryAllocatedBytes: Reading
  readonly pipelineStage: Reading
  /** What its steps went to; empty where they have no phases. */
  readonly phaseShares: readonly PhaseShare[]
  /** How many steps the leading rank is ahead. */
  readonly behindSteps: number
  /** The others' median step time divided by its own, of recent steps: 0.5 is half as fast as they are. */
  readonly relativeSpeed: Reading
}

export function newRank({ step, at }: TrainingStep): RankProgress {
  return { ...NOTHING, received: new BoundedMap(MOST_SENDERS), phases: new PhaseSums(), lastStep: step, lastAt: at }
}

const NOTHING: Omit<RankProgress, 'received' | 'phases'> = {
  lastSeq: 0,
  steps: 0,
  lastStep: 0,
  lastAt: 0,
  pid: null,
  localRank: null,
  secondsSum: 0,
  secondsCount: 0,
  lastStepSeconds: null,
  recentStepSeconds: null,
  memoryAllocatedBytes: null,
  sender: null,
  samples: null,
  tokens: null,
  countedSeconds: 0,
  pipelineStage: null,
  tensorRank: null,
}

export function savedRank({ received, phases, ...rest }: RankProgress): SavedRank {
  return { ...rest, phases: phases.toJSON(), received: Array.from(received, ([sender, ranges]) => [sender, ranges.toJSON()]) }
}

export function restoredRank(saved: SavedRank): RankProgress {
  const received = new BoundedMap<Sender, SeqRanges>(MOST_SENDERS)
  for (const [sender, ranges] of saved.received) received.set(sender, new SeqRanges(ranges))
  return { ...NOTHING, ...saved, phases: PhaseSums.from(saved.phases), received }
}

/** False: this number of this sender was received before. */
export function receive(rank: RankProgress, sender: Sender, seq: number): boolean {
  const ranges = rangesOf(rank, sender)
  const isNew = ranges.add(seq)
  rank.lastSeq = ranges.last
  return isNew
}

export function hasReceived({ received }: RankProgress, sender: Sender, seq: number): boolean {
  return received.get(sender)?.has(seq) ?? false
}

export function countOfRank(rank: RankProgress, step: TrainingStep, sender: Sender, pid: Reading, localRank: Reading): void {
  const { stepSeconds, custom } = step
  const isTimed = stepSeconds !== null && Number.isFinite(stepSeconds)
  rank.steps++
  rank.pid = pid ?? rank.pid
  rank.localRank = localRank ?? rank.localRank
  rank.phases.add(step)
  if (custom !== null) {
    rank.pipelineStage = custom[PIPELINE_STAGE] ?? rank.pipelineStage
    rank.tensorRank = custom[TENSOR_RANK] ?? rank.tensorRank
  }
  if (isTimed) {
    // A line may stand for several steps.
    const seconds = stepSeconds * (rank.steps === 1 ? 1 : Math.max(1, step.step - rank.lastStep))
    const tokens = tokensPerSecond(step)
    rank.samples = addedTo(rank.samples, step.throughputPerSecond, seconds)
    rank.tokens = addedTo(rank.tokens, tokens, seconds)
    if (step.throughputPerSecond !== null || tokens !== null) rank.countedSeconds += seconds
    rank.secondsSum += stepSeconds
    rank.secondsCount++
    rank.recentStepSeconds = (rank.recentStepSeconds ?? stepSeconds) * (1 - RECENT) + stepSeconds * RECENT
  }
  // Delayed steps are in the past.
  if (step.at < rank.lastAt) return
  rank.lastStep = step.step
  rank.lastAt = step.at
  rank.sender = sender
  if (isTimed) rank.lastStepSeconds = stepSeconds
  rank.memoryAllocatedBytes = step.memoryAllocatedBytes ?? rank.memoryAllocatedBytes
}

/** Of all ranks that work on data of their own: the stages of a pipeline, and the parts of a tensor-parallel group, share it. */
export function amountsOf(ranks: Iterable<RankProgress>): Amounts {
  const all = [...ranks]
  const first = Math.min(...all.map(({ pipelineStage }) => pipelineStage ?? 0))
  const own = all.filter(({ pipelineStage, tensorRank }) => (pipelineStage ?? 0) === first && (tensorRank ?? 0) === 0)
  const sum = (name: keyof Amounts) => own.reduce<Reading>((total, one) => (one[name] === null ? total : (total ?? 0) + one[name]), null)
  return { samples: sum('samples'), tokens: sum('tokens') }
}

export function rankRows(ranks: ReadonlyMap<number, RankProgress>): readonly RankRow[] {
  let foremost = 0
  for (const { lastStep } of ranks.values()) foremost = Math.max(foremost, lastStep)
  const times = [...ranks.values()].flatMap(({ recentStepSeconds }) => recentStepSeconds ?? []).sort((a, b) => a - b)
  return [...ranks]
    .sort(([a], [b]) => a - b)
    .map(([rank, one]) => ({
      rank,
      pid: one.pid,
      localRank: one.localRank,
      lastStep: one.lastStep,
      lastAt: one.lastAt,
      steps: one.steps,
      meanStepSeconds: one.secondsCount === 0 ? null : one.secondsSum / one.secondsCount,
      lastStepSeconds: one.lastStepSeconds,
      recentStepSeconds: one.recentStepSeconds,
      memoryAllocatedBytes: one.memoryAllocatedBytes,
      pipelineStage: one.pipelineStage,
      phaseShares: one.phases.shares(),
      behindSteps: foremost - one.lastStep,
      relativeSpeed: relativeSpeed(times, one.recentStepSeconds),
    }))
}

/** `times` ascending, with `own` among them. null with nobody to compare with. */
function relativeSpeed(times: readonly number[], own: Reading): Reading {
  const others = times.length - 1
  if (own === null || own <= 0 || others < 1) return null
  const place = placeOf(times, own)
  const other = (index: number) => times[index < place ? index : index + 1] ?? 0
  const median = (other((others - 1) >> 1) + other(others >> 1)) / 2
  return median / own
}

function placeOf(ascending: readonly number[], value: number): number {
  let low = 0
  let high = ascending.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}

function rangesOf({ received }: RankProgress, sender: Sender): SeqRanges {
  return received.get(sender) ?? received.keep(sender, new SeqRanges())
}
