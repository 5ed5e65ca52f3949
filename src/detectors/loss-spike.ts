/** The loss leaves its course upwards: a spike, or a divergence that has begun. */
import { formatFigure } from '../core/format.ts'
import type { DetectorKind } from '../core/kinds.ts'
import { type Curve, type CurveOptions, curve, type Floors, follow, restart } from './curve.ts'
import { NO_FINDINGS } from './finding.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

export interface LossSpikeOptions extends CurveOptions {
  /** Of the level: noise below this share of it is not believed. */
  readonly scaleFloorRatio: number
  /** A rise below this share of the level, and below this much, is not worth a warning. */
  readonly leastRiseRatio: number
  readonly leastRise: number
  /** Quiet steps in a row after which it is over. */
  readonly clearSteps: number
}

interface SpikeState {
  readonly curve: Curve
  open: boolean
  before: number
}

export const lossSpike: DetectorKind<LossSpikeOptions> = {
  name: 'loss_spike',
  defaults: THRESHOLDS.lossSpike,
  create(options) {
    const floors: Floors = {
      noise: (level) => options.scaleFloorRatio * Math.abs(level),
      rise: (level) => Math.min(options.leastRise, options.leastRiseRatio * Math.abs(level)),
    }
    return watchRuns<SpikeState>('loss_spike', {
      initial: () => ({ curve: curve(options), open: false, before: 0 }),
      rewind(run, book, at) {
        restart(run.state.curve)
        run.state.open = false
        return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} has gone back to an earlier step.`)
      },
      step(run, step, book) {
        const { state } = run
        if (step.loss === null || !Number.isFinite(step.loss)) return NO_FINDINGS
        const verdict = follow(state.curve, step.loss, options, floors)
        if (verdict === null) return NO_FINDINGS
        const subject = subjectOfRun(run.id)
        if (verdict.alarm === null) {
          if (!state.open || state.curve.calm < options.clearSteps) return NO_FINDINGS
          state.open = false
          return book.resolve(
            book.key(subject),
            step.at,
            `The loss of ${run.id} has settled at ${formatFigure(verdict.level)}; before it rose it was ${formatFigure(state.before)}.`,
          )
        }
        if (!state.open) state.before = verdict.level
        state.open = true
        if (!book.due(book.key(subject), step.at, 'warning')) return NO_FINDINGS
        return book.raise(subject, step.at, {
          severity: 'warning',
          message: `The loss of run ${run.id} has risen from about ${formatFigure(state.before)} to ${formatFigure(step.loss)} at step ${step.step} (${verdict.alarm}, ${Math.round(verdict.z)} times its usual noise).`,
          evidence: {
            step: step.step,
            loss: evidenceNumber(step.loss),
            loss_before: evidenceNumber(state.before),
            noise: evidenceNumber(verdict.scale),
            z: evidenceNumber(verdict.z),
            kind: verdict.alarm,
            learning_rate: step.learningRate === null ? null : evidenceNumber(step.learningRate),
          },
          confidence: verdict.alarm === 'jump' ? 0.9 : 0.85,
          advice: [
            'If it does not come down by itself, go back to a checkpoint before this step with a lower learning rate.',
            'Look at the batches of these steps.',
          ],
        })
      },
    })
  },
}
