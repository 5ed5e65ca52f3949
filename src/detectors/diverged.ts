/** Training has diverged: one finding from the first bad step until the loss is back near its old level, or the run ends. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import type { TrainingStep } from '../core/model.ts'
import { LOSS_CHART } from './charts.ts'
import { type Beginning, type DivergenceState, divergence, judgeCourse, restartCourse } from './divergence.ts'
import { NO_FINDINGS } from './finding.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

export const diverged: DetectorKind<Thresholds<'diverged'>> = {
  name: 'diverged',
  about: 'Training has diverged. The finding lasts until the loss is back near its old level, or the run ends.',
  severities: ['warning', 'critical'],
  inputs: ['step', 'run', 'gpu'],
  charts: [LOSS_CHART],
  defaults: THRESHOLDS.diverged,
  create: (options, maxRuns) =>
    watchRuns<DivergenceState>(
      'diverged',
      {
        judgesLate: true,
        initial: divergence,
        rewind(run, book, at) {
          restartCourse(run.state)
          return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} went back to an earlier step.`)
        },
        step(run, step, book) {
          const course = judgeCourse(run.state, step)
          const subject = subjectOfRun(run.id)
          const key = book.key(subject)
          const { begin } = run.state
          if (course !== 'diverged' || begin === null)
            return book.has(key) && course === 'healthy' ? book.resolve(key, step.at, backIn(run.id, step)) : NO_FINDINGS
          const severity = step.at - begin.at >= options.criticalSeconds * 1000 ? 'critical' : 'warning'
          if (!book.due(key, step.at, severity)) return NO_FINDINGS
          return book.raise(subject, step.at, {
            severity,
            since: begin.at,
            message: `Run ${run.id} diverged at step ${begin.step}: ${courseOf(begin, step.loss).join('; ')}.`,
            evidence: evidenceOf(begin, step.loss ?? begin.loss, step.step),
            confidence: severity === 'critical' ? 0.95 : 0.9,
            advice: [
              `Stop the run. Resume from a checkpoint before step ${begin.step}, with a lower learning rate or gradient clipping.`,
              'Check the batches of the steps just before it.',
            ],
          })
        },
      },
      maxRuns,
    ),
}

function backIn(run: string, { loss, gradientNorm }: TrainingStep): string {
  return loss === null
    ? `The gradient norm of run ${run} is back at ${formatFigure(gradientNorm ?? Number.NaN)}.`
    : `The loss of run ${run} is back at ${formatFigure(loss)}.`
}

/** How it rose, and what changed where it began, as far as it is known. */
function courseOf({ loss, lossBefore, rateChange, norm, normBefore, position }: Beginning, lossNow: number | null): string[] {
  const found: string[] = []
  if (lossBefore !== null) found.push(`loss ${formatFigure(lossBefore)} → ${formatFigure(lossNow ?? loss ?? Number.NaN)}`)
  if (norm !== null && normBefore !== null && norm > 3 * normBefore)
    found.push(`the gradient norm went from ${formatFigure(normBefore)} to ${formatFigure(norm)}`)
  if (rateChange)
    found.push(`the learning rate went from ${formatFigure(rateChange.from)} to ${formatFigure(rateChange.to)} at step ${rateChange.step}`)
  if (position !== null) found.push(`data: ${position}`)
  return found
}

function evidenceOf(begin: Beginning, loss: number | null, step: number) {
  const number = (value: number | null) => (value === null ? null : evidenceNumber(value))
  return {
    step,
    began_at_step: begin.step,
    loss: number(loss),
    loss_before: number(begin.lossBefore),
    gradient_norm: number(begin.norm),
    gradient_norm_before: number(begin.normBefore),
    learning_rate_before: number(begin.rateChange?.from ?? null),
    learning_rate: number(begin.rateChange?.to ?? null),
    learning_rate_step: begin.rateChange?.step ?? null,
    position: begin.position,
  }
}
