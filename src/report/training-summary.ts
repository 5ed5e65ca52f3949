/** The summary of a run or a recording: the same for the terminal, JSON and the HTML page. */

import { type Cost, costOf } from '../core/gpu-cost.ts'
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import type { Hyperparameters } from '../core/hyperparameters.ts'
import type { LayerSummary } from '../core/layer-figures.ts'
import type { OomReport } from '../core/memory/oom-report.ts'
import type { Reading, RunHang, RunLeakLine, Severity } from '../core/model.ts'
import type { RunModel } from '../core/run-model.ts'
import type { RunTime } from '../core/run-time.ts'
import type { PhaseShare } from '../core/step-phases.ts'
import type { LossPoint } from './loss-course.ts'
import { type RunFigures, runFigures } from './run-figures.ts'
import type { GpuUseSummary } from './training-gpu-use.ts'
import type { SummaryRank } from './training-ranks.ts'

export interface SummaryGpu {
  readonly id: string
  readonly label: string
  readonly name: string | null
  readonly memoryTotalBytes: Reading
  readonly use: GpuUseSummary
  /** Of the run's own processes, where they were seen. */
  readonly peakProcessBytes: Reading
}

export interface SummaryFinding {
  readonly at: number
  readonly until: Reading
  readonly detector: string
  readonly severity: Severity
  readonly message: string
  readonly gpuIndex: Reading
  readonly run: string | null
  readonly advice: readonly string[]
}

export interface SummaryTraining {
  readonly steps: number
  readonly lastStep: Reading
  readonly loss: Reading
  readonly bestLoss: Reading
  readonly stepsPerSecond: Reading
  readonly throughputPerSecond: Reading
  readonly meanStepSeconds: Reading
  readonly tokensPerSecond: Reading
  /** Of all ranks; null: not counted. */
  readonly samples: Reading
  readonly tokens: Reading
  readonly memoryPeakBytes: Reading
  /** What the time of the steps went to; empty where it is not known. */
  readonly phaseShares: readonly PhaseShare[]
  readonly model: RunModel | null
  /** What the wall time went to. */
  readonly time: RunTime | null
  readonly ranks: readonly SummaryRank[]
  readonly losses: readonly LossPoint[]
}

export interface SummaryRun {
  readonly id: string
  readonly name: string
  readonly from: number
  readonly to: Reading
  readonly outcome: string | null
}

export interface Summary {
  readonly title: string
  readonly runId: string | null
  readonly outcome: string | null
  readonly message: string | null
  /** Why memory ran out, where the SDK recorded it. */
  readonly outOfMemory: OomReport | null
  /** Lines that were recorded to leak GPU memory. */
  readonly leaks: readonly RunLeakLine[]
  /** Who held it up when it last stood still, and where its ranks were. */
  readonly hang: RunHang | null
  readonly stacks: readonly RankStacks[]
  /** Of one run; empty where none were reported. */
  readonly hyperparameters: Hyperparameters
  /** Of the model; null: nobody watched them. */
  readonly layers: LayerSummary | null
  /** Of a whole recording; empty in the summary of one run. */
  readonly runs: readonly SummaryRun[]
  readonly from: number
  readonly to: number
  readonly gpus: readonly SummaryGpu[]
  readonly gpuHours: number
  readonly energyKilowattHours: Reading
  readonly cost: Cost | null
  readonly figures: RunFigures
  /** It is unknown which GPUs are meant: these are all of them. */
  readonly isOfAllGpus: boolean
  readonly training: SummaryTraining | null
  readonly findings: readonly SummaryFinding[]
  readonly notes: readonly string[]
}

export type SummaryInput = Omit<Summary, 'gpuHours' | 'energyKilowattHours' | 'cost' | 'figures'>

export function summarize(input: SummaryInput, pricePerGpuHour: number | null): Summary {
  const hours = Math.max(0, input.to - input.from) / 3_600_000
  const each = input.gpus.map(({ use }) => use.energyJoules).filter((value) => value !== null)
  const joules = each.length === 0 ? null : each.reduce((a, b) => a + b, 0)
  const cost = costOf(
    input.gpus.map(({ name }) => ({ name, hours })),
    pricePerGpuHour,
  )
  return {
    ...input,
    gpuHours: hours * input.gpus.length,
    energyKilowattHours: joules === null ? null : joules / 3.6e6,
    cost,
    figures: runFigures(input.training, input.gpus, input.isOfAllGpus, joules, cost),
  }
}
