/** The GPU waits for data: the share of each step spent on it, where the run reports it. Information only. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import type { TrainingStep } from '../core/model.ts'
import { STEP_TIME_CHART, UTILIZATION_CHART } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface WaitState {
  steps: number
  waitSeconds: number
  totalSeconds: number
  open: boolean
}

/** Names that SDKs and trainers use for the wait for a batch. */
const DATA_PHASES = ['data_wait', 'data', 'data_loading', 'data_load', 'data_time', 'dataloader', 'input']

export const slowData: DetectorKind<Thresholds<'slowData'>> = {
  name: 'slow_data',
  about: 'A run spends a large part of each step waiting for data.',
  severities: ['info'],
  inputs: ['step', 'run', 'gpu'],
  charts: [UTILIZATION_CHART, STEP_TIME_CHART],
  defaults: THRESHOLDS.slowData,
  create: (options, maxRuns) =>
    watchRuns<WaitState>(
      'slow_data',
      {
        initial: (open) => ({ steps: 0, waitSeconds: 0, totalSeconds: 0, open }),
        step(run, step, book) {
          const { state } = run
          const wait = waitOf(step)
          if (wait === null) return NO_FINDINGS
          // The trainer may or may not count the wait as part of the step.
          const total = Math.max(step.stepSeconds ?? 0, sumOf(step))
          if (!(total > 0)) return NO_FINDINGS
          const weight = 1 / Math.min(++state.steps, options.steps)
          state.waitSeconds += (wait - state.waitSeconds) * weight
          state.totalSeconds += (total - state.totalSeconds) * weight
          if (state.steps < options.steps) return NO_FINDINGS
          const ratio = state.waitSeconds / state.totalSeconds
          const subject = subjectOfRun(run.id)
          if (ratio < options.waitRatio * (state.open ? 0.75 : 1)) {
            if (!state.open) return NO_FINDINGS
            state.open = false
            return book.resolve(book.key(subject), step.at, `Run ${run.id} now waits for data only ${formatPercent(ratio)} of the time.`)
          }
          state.open = true
          if (!book.due(book.key(subject), step.at, 'info')) return NO_FINDINGS
          return book.raise(subject, step.at, {
            severity: 'info',
            message: `Run ${run.id} spends ${formatPercent(ratio)} of each step waiting for data (${formatDuration(state.waitSeconds * 1000)} of ${formatDuration(state.totalSeconds * 1000)}).`,
            evidence: {
              wait_ratio: evidenceNumber(ratio),
              wait_seconds: evidenceNumber(state.waitSeconds),
              step_seconds: evidenceNumber(state.totalSeconds),
            },
            confidence: 0.9,
            advice: ['Use more data loader workers, pinned memory and prefetching, or decode and shuffle the data in advance.'],
          })
        },
      },
      maxRuns,
    ),
}

function waitOf(step: TrainingStep): number | null {
  if (step.phaseSeconds === null) return null
  for (const name of DATA_PHASES) {
    const seconds = step.phaseSeconds[name]
    if (seconds !== undefined && Number.isFinite(seconds) && seconds >= 0) return seconds
  }
  return null
}

function sumOf(step: TrainingStep): number {
  let sum = 0
  for (const seconds of Object.values(step.phaseSeconds ?? {})) if (Number.isFinite(seconds) && seconds > 0) sum += seconds
  return sum
}
