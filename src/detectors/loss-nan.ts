/** Loss or gradient norm is not finite: reported at that very step, or with the steps in which it may have begun where losses are logged rarely. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import type { NonFiniteLayer, Severity, TrainingStep } from '../core/model.ts'
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
  /** The layer that the SDK found to be the first. */
  layer: (NonFiniteLayer & { readonly step: number; readonly isSaid: boolean }) | null
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
        initial: (open) => ({
          open,
          rank: 0,
          badInRow: 0,
          goodInRow: 0,
          lastLoss: null,
          lastStep: null,
          firstStep: null,
          began: null,
          layer: null,
        }),
        step(run, step, book) {
          const { state } = run
          state.firstStep ??= step.step
          if (step.nonFinite && !state.layer) state.layer = { ...step.nonFinite, step: step.step, isSaid: false }
          const normBad = broken(step.gradientNorm)
          // Hugging Face's Trainer logs a loss of 0 where all losses were NaN (`logging_nan_inf_filter`).
          const lossBad = broken(step.loss) || (step.loss === 0 && Number.isNaN(step.gradientNorm))
          if (!lossBad && !normBad) {
            if (step.loss !== null) {
              state.lastLoss = step.loss
              state.lastStep = step.step
            }
            // A gradient that overflowed once, as mixed precision does, says nothing of what comes later.
            if (!state.open && !step.nonFinite) state.layer = null
            if (!state.open || step.rank !== state.rank || (step.loss === null && step.gradientNorm === null)) return NO_FINDINGS
            state.badInRow = 0
            if (++state.goodInRow < options.clearSteps) return NO_FINDINGS
            state.open = false
            state.began = null
            state.layer = null
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
          const { layer = null } = state
          const isNews = layer !== null && !layer.isSaid
          if (!isNews && !book.due(book.key(subject), step.at, severity)) return NO_FINDINGS
          // The book repeats a finding only after a while; the layer behind it is news at once.
          const since = isNews ? book.get(book.key(subject))?.since : undefined
          if (isNews) {
            state.layer = { ...layer, isSaid: true }
            book.resolve(book.key(subject), step.at)
          }
          const shown = state.began?.shown ?? step.step
          const isSame = shown === step.step
          return book.raise(subject, step.at, {
            ...(since === undefined ? {} : { since }),
            severity,
            message: `Run ${run.id}: ${what(step, lossBad)} ${isSame ? 'at' : 'since'} step ${shown}${past(state)}.${layerText(layer)}`,
            evidence: {
              step: shown,
              earliest_step: state.began?.earliest ?? shown,
              rank: step.rank,
              loss: step.loss === null ? null : evidenceNumber(step.loss),
              gradient_norm: step.gradientNorm === null ? null : evidenceNumber(step.gradientNorm),
              learning_rate: step.learningRate === null ? null : evidenceNumber(step.learningRate),
              last_finite_loss: state.lastLoss,
              last_finite_step: state.lastStep,
              ...(layer === null ? {} : { layer: layer.layer, layer_part: layer.part, layer_step: layer.step }),
            },
            confidence: severity === 'critical' ? 1 : 0.7,
            advice:
              severity === 'critical'
                ? [
                    'Stop the run: it will not recover. Resume from the last checkpoint before this step.',
                    ...(layer === null ? [] : [`Look at ${layer.layer} first: ${ADVICE[layer.part]}`]),
                    'Lower the learning rate, clip gradients, and check the batch of this step.',
                  ]
                : ['With mixed precision a single skipped step is normal; more are not.'],
          })
        },
      },
      maxRuns,
    ),
}

const ADVICE: Readonly<Record<NonFiniteLayer['part'], string>> = {
  weights: 'its weights are not finite any more; what changed them last did it.',
  activations: 'its input was finite and its output is not (a division, a logarithm, an overflow in half precision).',
  gradients: 'the gradients behind it are finite and its own are not (a square root or a division at 0).',
}

function layerText(layer: NanState['layer']): string {
  return layer === null ? '' : ` First NaN in ${layer.layer} (${layer.part}), step ${layer.step}.`
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
