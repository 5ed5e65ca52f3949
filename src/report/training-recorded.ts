/** What a report knows of a log folder: its GPUs, its ranks and the series of each. */
import type { Reading, TrainingStep } from '../core/model.ts'
import { addedTo } from '../core/model-work.ts'
import { tokensPerSecond } from '../core/rank-groups.ts'
import type { TimeAccount } from '../core/run-time.ts'
import type { PhaseSums } from '../core/step-phases.ts'
import type { LossCourse } from './loss-course.ts'
import type { BucketSeries, TimeBuckets } from './training-buckets.ts'
import type { GpuUse } from './training-gpu-use.ts'
import type { SummaryFinding } from './training-summary.ts'

export const GPU_SERIES = [
  'utilizationRatio',
  'tensorActiveRatio',
  'memoryUsedBytes',
  'memoryReservedBytes',
  'temperatureCelsius',
  'powerWatts',
] as const
export const STEP_SERIES = [
  'loss',
  'learningRate',
  'gradientNorm',
  'stepSeconds',
  'throughputPerSecond',
  'memoryAllocatedBytes',
  'memoryReservedBytes',
  'memoryActiveBytes',
  'memoryInactiveSplitBytes',
] as const satisfies readonly (keyof TrainingStep)[]

export type GpuSeriesName = (typeof GPU_SERIES)[number]
export type StepSeriesName = (typeof STEP_SERIES)[number]

export interface RecordedGpu {
  readonly id: string
  index: number | null
  name: string | null
  label: string
  totalBytes: Reading
  isSimulated: boolean
  readonly use: GpuUse
  /** The most that the run's own processes held together; null: none was seen here. */
  ownPeakBytes: Reading
  readonly series: Readonly<Record<GpuSeriesName, BucketSeries>>
  /** Memory by process. */
  readonly pids: Map<number, BucketSeries>
  /** Host memory by process. */
  readonly residentPeaks: Map<number, number>
}

export interface RecordedRank {
  readonly run: string
  readonly rank: number
  steps: number
  lastStep: number
  firstAt: number
  lastAt: number
  loss: Reading
  bestLoss: Reading
  secondsSum: number
  secondsCount: number
  throughputSum: number
  throughputCount: number
  /** So far; null: not counted. */
  samples: Reading
  tokens: Reading
  /** Of the steps in which they were counted. */
  countedSeconds: number
  peakAllocated: Reading
  readonly time: TimeAccount
  readonly losses: LossCourse
  readonly series: Readonly<Record<StepSeriesName, BucketSeries>>
  readonly phases: PhaseSums
  /** Seconds per step; of the first rank alone. */
  readonly phaseSeries: Map<string, BucketSeries>
}

export interface Recorded {
  readonly buckets: TimeBuckets
  readonly gpus: readonly RecordedGpu[]
  readonly ranks: readonly RecordedRank[]
  readonly findings: readonly SummaryFinding[]
  readonly from: number
  readonly to: number
  readonly lines: number
  readonly skipped: number
  readonly faults: readonly string[]
}

export function countStep(rank: RecordedRank, step: TrainingStep): void {
  rank.steps++
  rank.firstAt = Math.min(rank.firstAt, step.at)
  countAmounts(rank, step)
  rank.time.add(step)
  rank.losses.add(step.step, step.loss)
  if (step.memoryPeakAllocatedBytes !== null) rank.peakAllocated = Math.max(rank.peakAllocated ?? 0, step.memoryPeakAllocatedBytes)
  if (step.at >= rank.lastAt) {
    rank.lastAt = step.at
    rank.lastStep = step.step
    rank.loss = step.loss ?? rank.loss
  }
  if (step.loss !== null && Number.isFinite(step.loss)) rank.bestLoss = Math.min(rank.bestLoss ?? step.loss, step.loss)
  if (step.stepSeconds !== null && Number.isFinite(step.stepSeconds)) {
    rank.secondsSum += step.stepSeconds
    rank.secondsCount++
  }
  rank.phases.add(step)
  if (step.throughputPerSecond !== null && Number.isFinite(step.throughputPerSecond)) {
    rank.throughputSum += step.throughputPerSecond
    rank.throughputCount++
  }
}

function countAmounts(rank: RecordedRank, step: TrainingStep): void {
  const tokens = tokensPerSecond(step)
  const { stepSeconds } = step
  if (stepSeconds === null || !Number.isFinite(stepSeconds)) return
  // A line may stand for several steps.
  const seconds = stepSeconds * (rank.steps === 1 ? 1 : Math.max(1, step.step - rank.lastStep))
  rank.samples = addedTo(rank.samples, step.throughputPerSecond, seconds)
  rank.tokens = addedTo(rank.tokens, tokens, seconds)
  if (step.throughputPerSecond !== null || tokens !== null) rank.countedSeconds += seconds
}
