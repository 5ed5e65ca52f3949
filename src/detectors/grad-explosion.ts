/** Exploding gradients: far above their usual norm (on a log scale), or above a level that is too much for most models. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import { evidenceLevel } from './charts.ts'
import { type Curve, curve, type Floors, follow, restart } from './curve.ts'
import {
  becomesDivergence,
  type DivergenceState,
  divergence,
  isFalling,
  judgeCourse,
  PART_OF_IT_SECONDS,
  restartCourse,
} from './divergence.ts'
import { NO_FINDINGS } from './finding.ts'
import { median } from './rolling-median.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface GradState {
  readonly curve: Curve
  readonly divergence: DivergenceState
  open: boolean
  /** Whether the last three norms were above the level, newest in bit 0. */
  above: number
  /** Normal steps in a row. */
  quiet: number
  /** The usual norm before they exploded. */
  before?: number | null
  /** A loss spike says already that this run goes astray. */
  isSpike?: boolean
}

/** One order of magnitude above the usual norm. */
const FAR_RATIO = 10
/** A norm within this many times its old level is back; one that stays higher has to be quiet for so many times longer. */
const DOWN_RATIO = 3
const HIGH_PATIENCE = 20

/** On the log scale: less noise is not believed, and a norm that only doubles is normal. */
const FLOORS: Floors = { noise: () => 0.05, rise: () => Math.LN2 }

export const gradExplosion: DetectorKind<Thresholds<'lossSpike'> & Thresholds<'gradExplosion'>> = {
  name: 'grad_explosion',
  about: 'Gradients explode: their norm is far above its usual range, or above a level that is too much for most models.',
  severities: ['warning'],
  inputs: ['step', 'run', 'gpu', 'finding'],
  patienceSeconds: PART_OF_IT_SECONDS,
  charts: [{ of: 'steps', field: 'gradientNorm', title: 'Gradient norm', unit: 'count', limit: evidenceLevel('level') }],
  defaults: { ...THRESHOLDS.lossSpike, ...THRESHOLDS.gradExplosion },
  create: (options, maxRuns) =>
    watchRuns<GradState>(
      'grad_explosion',
      {
        judgesLate: true,
        initial: (open) => ({ curve: curve(options), divergence: divergence(), open, above: 0, quiet: 0 }),
        rewind(run, book, at) {
          restart(run.state.curve)
          restartCourse(run.state.divergence)
          run.state.open = false
          run.state.above = 0
          return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} went back to an earlier step.`)
        },
        finding(run, { detector, state }) {
          if (detector === 'loss_spike') run.state.isSpike = state === 'active'
          return NO_FINDINGS
        },
        step(run, step, book) {
          const { state } = run
          const norm = step.gradientNorm
          const course = judgeCourse(state.divergence, step)
          if (norm === null || !Number.isFinite(norm) || norm < 0) return NO_FINDINGS
          if (course === 'diverged') {
            if (!becomesDivergence(book.get(book.key(subjectOfRun(run.id))), step.at)) return NO_FINDINGS
            state.open = false
            return book.resolve(book.key(subjectOfRun(run.id)), step.at, `Run ${run.id} has diverged; this is part of it.`)
          }
          const usual = state.curve.level.ring.length === 0 ? null : Math.exp(median(state.curve.level))
          const verdict = follow(state.curve, Math.log(Math.max(norm, 1e-12)), options, FLOORS)
          state.above = ((state.above << 1) | (norm > options.norm ? 1 : 0)) & 0b111
          const twice = (state.above & 0b001) !== 0 && (state.above & 0b110) !== 0
          // A run whose norm is always above the level is judged by its usual norm only.
          const unusual = usual === null || norm > 3 * usual
          const byLevel = unusual && (twice || norm > options.certainNorm)
          // Below the level only a norm far above the usual one counts, and not while the loss falls (warm-up).
          const isFar = usual !== null && norm > FAR_RATIO * usual && norm > options.norm / 10 && !isFalling(state.divergence, step)
          const byCourse = verdict !== null && verdict.alarm !== null && (isFar || (unusual && norm > options.norm))
          const subject = subjectOfRun(run.id)
          if (!byLevel && !byCourse) {
            state.quiet++
            const isDown = state.before == null || norm <= DOWN_RATIO * state.before
            if (!state.open || state.quiet < options.clearSteps * (isDown ? 1 : HIGH_PATIENCE)) return NO_FINDINGS
            state.open = false
            return book.resolve(book.key(subject), step.at, `The gradient norm of run ${run.id} is back at ${formatFigure(norm)}.`)
          }
          state.quiet = 0
          if (state.isSpike && !state.open) return NO_FINDINGS
          if (!state.open) state.before = usual
          state.open = true
          if (!book.due(book.key(subject), step.at, 'warning')) return NO_FINDINGS
          const before = usual === null ? '' : `, usually ${formatFigure(usual)}`
          return book.raise(subject, step.at, {
            severity: 'warning',
            message: `Run ${run.id} has exploding gradients: norm ${formatFigure(norm)} at step ${step.step}${before}.`,
            evidence: {
              step: step.step,
              gradient_norm: evidenceNumber(norm),
              usual_norm: usual === null ? null : evidenceNumber(usual),
              level: options.norm,
              z: verdict === null ? null : evidenceNumber(verdict.z),
            },
            confidence: byLevel && byCourse ? 0.95 : 0.8,
            advice: [
              'Clip gradients (for example at norm 1) and lower the learning rate.',
              'Check the batch of this step for bad samples.',
            ],
          })
        },
      },
      maxRuns,
    ),
}
