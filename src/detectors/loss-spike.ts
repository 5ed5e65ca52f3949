/** The loss rises out of its usual range: a spike, or the start of a divergence. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import type { Finding, TrainingStep } from '../core/model.ts'
import { LOSS_CHART } from './charts.ts'
import { type Curve, curve, type Floors, follow, restart } from './curve.ts'
import { becomesDivergence, type DivergenceState, divergence, judgeCourse, PART_OF_IT_SECONDS, restartCourse } from './divergence.ts'
import { type FindingBook, NO_FINDINGS } from './finding.ts'
import { subjectOfRun, type WatchedRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

/** A rise below this share of the first loss is between losses that are practically zero. */
const NOTHING_SHARE = 0.001

/** A loss within this share of its old level is back; one that stays higher has to be calm for so many times longer. */
const DOWN_SHARE = 0.2
const HIGH_PATIENCE = 20

interface SpikeState {
  readonly curve: Curve
  readonly divergence: DivergenceState
  open: boolean
  before: number
  /** Far out and perhaps diverged: judged when that is known. */
  suspected: TrainingStep[]
  /** Exploding gradients say already that this run goes astray. */
  isExploding?: boolean
}

export const lossSpike: DetectorKind<Thresholds<'lossSpike'>> = {
  name: 'loss_spike',
  about: 'The loss rose out of its usual range: a spike, or the start of a divergence.',
  severities: ['warning'],
  inputs: ['step', 'run', 'gpu', 'finding'],
  patienceSeconds: PART_OF_IT_SECONDS,
  charts: [LOSS_CHART],
  defaults: THRESHOLDS.lossSpike,
  create(options, maxRuns) {
    const floors: Floors = {
      noise: (level) => options.scaleFloorRatio * Math.abs(level),
      rise: (level) => Math.min(options.leastRise, options.leastRiseRatio * Math.abs(level)),
    }
    return watchRuns<SpikeState>(
      'loss_spike',
      {
        judgesLate: true,
        initial: (open) => ({ curve: curve(options), divergence: divergence(), open, before: 0, suspected: [] }),
        rewind(run, book, at) {
          restart(run.state.curve)
          restartCourse(run.state.divergence)
          run.state.open = false
          run.state.suspected = []
          return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} went back to an earlier step.`)
        },
        finding(run, { detector, state }) {
          if (detector === 'grad_explosion') run.state.isExploding = state === 'active'
          return NO_FINDINGS
        },
        step(run, step, book) {
          const { state } = run
          if (step.loss === null || !Number.isFinite(step.loss)) return NO_FINDINGS
          const course = judgeCourse(state.divergence, step)
          if (course === 'suspected') {
            state.suspected.push(step)
            return NO_FINDINGS
          }
          const waiting = state.suspected.splice(0)
          if (course === 'healthy') return [...waiting, step].flatMap((one) => judge(run, one, book))
          if (!becomesDivergence(book.get(book.key(subjectOfRun(run.id))), step.at)) return NO_FINDINGS
          state.open = false
          return book.resolve(book.key(subjectOfRun(run.id)), step.at, `The loss of run ${run.id} did not come down: the run has diverged.`)
        },
      },
      maxRuns,
    )

    function judge(run: WatchedRun<SpikeState>, step: TrainingStep, book: FindingBook): readonly Finding[] {
      const { state } = run
      const loss = step.loss ?? Number.NaN
      const verdict = follow(state.curve, loss, options, floors)
      if (verdict === null) return NO_FINDINGS
      const subject = subjectOfRun(run.id)
      const isSmall = loss - verdict.level < NOTHING_SHARE * Math.abs(state.divergence.first ?? 0)
      if (verdict.alarm === null || isSmall) {
        const isDown = verdict.level <= state.before + DOWN_SHARE * Math.abs(state.before)
        if (!state.open || state.curve.calm < options.clearSteps * (isDown ? 1 : HIGH_PATIENCE)) return NO_FINDINGS
        state.open = false
        return book.resolve(
          book.key(subject),
          step.at,
          `The loss of run ${run.id} has settled at ${formatFigure(verdict.level)}; it was ${formatFigure(state.before)} before it rose.`,
        )
      }
      if (state.isExploding && !state.open) return NO_FINDINGS
      if (!state.open) state.before = verdict.level
      state.open = true
      if (!book.due(book.key(subject), step.at, 'warning')) return NO_FINDINGS
      return book.raise(subject, step.at, {
        severity: 'warning',
        message: `The loss of run ${run.id} rose from about ${formatFigure(state.before)} to ${formatFigure(loss)} at step ${step.step} (${verdict.alarm}, ${Math.round(verdict.z)} times its usual noise).`,
        evidence: {
          step: step.step,
          loss: evidenceNumber(loss),
          loss_before: evidenceNumber(state.before),
          noise: evidenceNumber(verdict.scale),
          z: evidenceNumber(verdict.z),
          kind: verdict.alarm,
          gradient_norm: step.gradientNorm === null ? null : evidenceNumber(step.gradientNorm),
          learning_rate: step.learningRate === null ? null : evidenceNumber(step.learningRate),
        },
        confidence: verdict.alarm === 'jump' ? 0.9 : 0.85,
        advice: [
          'If it does not come down, resume from a checkpoint before this step with a lower learning rate.',
          'Check the batches of these steps.',
        ],
      })
    }
  },
}
