/** The summary of a run or a recording: the same for the terminal, JSON and the HTML page. */
import type { RankStacks } from '../core/hang/rank-stacks.ts'
import type { OomReport } from '../core/memory/oom-report.ts'
import type { Reading, RunHang, RunLeakLine, Severity } from '../core/model.ts'
import type { PhaseShare } from '../core/step-phases.ts'
import { type Cost, costOf } from './training-cost.ts'
import type { GpuUseSummary } from './training-gpu-use.ts'

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
  /** What the time of the steps went to; empty where it is not known. */
  readonly phaseShares: readonly PhaseShare[]
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
  /** Of a whole recording; empty in the summary of one run. */
  readonly runs: readonly SummaryRun[]
  readonly from: number
  readonly to: number
  readonly gpus: readonly SummaryGpu[]
  readonly gpuHours: number
  readonly energyKilowattHours: Reading
  readonly cost: Cost | null
  readonly training: SummaryTraining | null
  readonly findings: readonly SummaryFinding[]
  readonly notes: readonly string[]
}

export type SummaryInput = Omit<Summary, 'gpuHours' | 'energyKilowattHours' | 'cost'>

export function summarize(input: SummaryInput, pricePerGpuHour: number | null): Summary {
  const hours = Math.max(0, input.to - input.from) / 3_600_000
  const joules = input.gpus.map(({ use }) => use.energyJoules).filter((value) => value !== null)
  return {
    ...input,
    gpuHours: hours * input.gpus.length,
    energyKilowattHours: joules.length === 0 ? null : joules.reduce((a, b) => a + b, 0) / 3.6e6,
    cost: costOf(
      input.gpus.map(({ name }) => ({ name, hours })),
      pricePerGpuHour,
    ),
  }
}
