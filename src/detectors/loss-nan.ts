/** Loss or gradient norm is not finite: reported at that very step, or with the steps in which it may have begun where losses are logged rarely. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import type { Severity, TrainingStep } from '../core/model.ts'
import { LOSS_CHART } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface NanState {
  open: boolean
  /** Rank that reported it: the others may be fine. */
  rank: number
  badInRow: number
  goodInRow: number
  lastLoss: number | null
  lastStep: number | null
  /** The first step that was seen at all. */
  firstStep: number | null
  /** The step that showed it, and the earliest in which it may have begun. */
  began: { readonly earliest: number; readonly shown: number } | null
}

export const lossNan: DetectorKind<Thresholds<'lossNan'>> = {
  name: 'loss_nan',
  about: 'The loss or the gradient norm is NaN or infinite.',
  severities: ['warning', 'critical'],
  inputs: ['step', 'run', 'gpu'],
  findsAgainSeconds: 60,
  charts: [LOSS_CHART],
  defaults: THRESHOLDS.lossNan,
  create: (options, maxRuns) =>
    watchRuns<NanState>(
      'loss_nan',
      {
        leaderOnly: false,
        judgesLate: true,
        initial: (open) => ({ open, rank: 0, badInRow: 0, goodInRow: 0, lastLoss: null, lastStep: null, firstStep: null, began: null }),
        step(run, step, book) {
          const { state } = run
          state.firstStep ??= step.step
          const normBad = broken(step.gradientNorm)
          // Hugging Face's Trainer logs a loss of 0 where all losses were NaN (`logging_nan_inf_filter`).
          const lossBad = broken(step.loss) || (step.loss === 0 && Number.isNaN(step.gradientNorm))
          if (!lossBad && !normBad) {
            if (step.loss !== null) {
              state.lastLoss = step.loss
              state.lastStep = step.step
            }
            if (!state.open || step.rank !== state.rank || (step.loss === null && step.gradientNorm === null)) return NO_FINDINGS
            state.badInRow = 0
            if (++state.goodInRow < options.clearSteps) return NO_FINDINGS
            state.open = false
            state.began = null
            return book.resolve(
              book.key(subjectOfRun(run.id)),
              step.at,
              `Loss and gradients of run ${run.id} have been finite again for ${options.clearSteps} steps.`,
            )
          }
          if (!state.open) state.rank = step.rank
          state.open = true
          if (lossBad) state.began ??= { earliest: earliestStep(state, step), shown: step.step }
          if (step.rank === state.rank) state.badInRow++
          state.goodInRow = 0
          // Mixed precision finds its loss scale by one overflowing gradient, and skips that step.
          const severity: Severity = lossBad || state.badInRow >= options.gradientSteps ? 'critical' : 'warning'
          const subject = subjectOfRun(run.id)
          if (!book.due(book.key(subject), step.at, severity)) return NO_FINDINGS
          const shown = state.began?.shown ?? step.step
          const isSame = shown === step.step
          return book.raise(subject, step.at, {
            severity,
            message: `Run ${run.id}: ${what(step, lossBad)} ${isSame ? 'at' : 'since'} step ${shown}${past(state)}.`,
            evidence: {
              step: shown,
              earliest_step: state.began?.earliest ?? shown,
              rank: step.rank,
              loss: step.loss === null ? null : evidenceNumber(step.loss),
              gradient_norm: step.gradientNorm === null ? null : evidenceNumber(step.gradientNorm),
              learning_rate: step.learningRate === null ? null : evidenceNumber(step.learningRate),
              last_finite_loss: state.lastLoss,
              last_finite_step: state.lastStep,
            },
            confidence: severity === 'critical' ? 1 : 0.7,
            advice:
              severity === 'critical'
                ? [
                    'Stop the run: it will not recover. Resume from the last checkpoint before this step.',
                    'Lower the learning rate, clip gradients, and check the batch of this step.',
                  ]
                : ['With mixed precision a single skipped step is normal; more are not.'],
          })
        },
      },
      maxRuns,
    ),
}

function broken(value: number | null): boolean {
  return value !== null && !Number.isFinite(value)
}

function what(step: TrainingStep, lossBad: boolean): string {
  return lossBad ? `the loss is ${step.loss === 0 ? 'NaN (logged as 0)' : step.loss}` : `the gradient norm is ${step.gradientNorm}`
}

/** A loss that is logged every tenth step stands for ten steps: it may have broken in any of them. */
function earliestStep({ lastStep, firstStep }: NanState, { step }: TrainingStep): number {
  return Math.min(step, lastStep === null ? (firstStep ?? step) : lastStep + 1)
}

function past({ began, lastLoss, lastStep }: NanState): string {
  const unsure = began !== null && began.earliest < began.shown ? `; it began between step ${began.earliest} and ${began.shown}` : ''
  return lastLoss === null ? unsure : `${unsure}; the last finite loss was ${formatFigure(lastLoss)} at step ${lastStep}`
}
