/** The loss has stopped falling: medians of long windows, compared with their noise. Information; an alert once it has lasted long. */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatFigure } from '../core/format.ts'
import { LOSS_CHART } from './charts.ts'
import { NO_FINDINGS } from './finding.ts'
import { clear, median, push, type RollingMedian, rollingMedian } from './rolling-median.ts'
import { subjectOfRun, watchRuns } from './run-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

interface PlateauState {
  readonly block: RollingMedian
  readonly medians: number[]
  open: boolean
  /** Then it is no plateau, whatever the loss does. */
  isDiverged?: boolean
}

export const lossPlateau: DetectorKind<Thresholds<'lossPlateau'>> = {
  name: 'loss_plateau',
  about: 'The loss has not fallen for a long time.',
  severities: ['info'],
  inputs: ['step', 'run', 'gpu', 'finding'],
  charts: [LOSS_CHART],
  // Most runs end on a plateau, and few stay there for long: people want to know of those.
  patienceSeconds: 1800,
  alertSeverity: () => 'warning',
  defaults: THRESHOLDS.lossPlateau,
  create: (options, maxRuns) =>
    watchRuns<PlateauState>(
      'loss_plateau',
      {
        initial: (open) => ({ block: rollingMedian(options.blockSteps), medians: [], open }),
        rewind(run, book, at) {
          restart(run.state)
          return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} went back to an earlier step.`)
        },
        finding(run, { detector, state, at }, book) {
          if (detector !== 'diverged') return NO_FINDINGS
          run.state.isDiverged = state === 'active'
          if (!run.state.isDiverged) return NO_FINDINGS
          restart(run.state)
          return book.resolve(book.key(subjectOfRun(run.id)), at, `Run ${run.id} has diverged: its loss is not on a plateau.`)
        },
        step(run, step, book) {
          const { state } = run
          if (state.isDiverged || step.loss === null || !Number.isFinite(step.loss)) return NO_FINDINGS
          push(state.block, step.loss)
          if (state.block.ring.length < options.blockSteps) return NO_FINDINGS
          state.medians.push(median(state.block))
          clear(state.block)
          if (state.medians.length > options.blocks) state.medians.shift()
          if (state.medians.length < options.blocks) return NO_FINDINGS
          const half = options.blocks >> 1
          const earlier = middle(state.medians.slice(0, half))
          const later = middle(state.medians.slice(half))
          const noise = noiseOf(state.medians)
          const improvement = earlier - later
          const flat = improvement < Math.max(2 * noise * Math.sqrt(3 / half), options.minImprovementRatio * Math.abs(earlier))
          const subject = subjectOfRun(run.id)
          const key = book.key(subject)
          if (!flat) {
            state.open = false
            return book.resolve(key, step.at, `The loss of run ${run.id} is falling again: ${formatFigure(later)}.`)
          }
          state.open = true
          if (!book.due(key, step.at, 'info')) return NO_FINDINGS
          const steps = half * options.blockSteps
          return book.raise(subject, step.at, {
            severity: 'info',
            message: `The loss of run ${run.id} has not fallen for ${2 * steps} steps: ${formatFigure(later)} in the last ${steps}, ${formatFigure(earlier)} in the ${steps} before.`,
            evidence: {
              step: step.step,
              loss_earlier: evidenceNumber(earlier),
              loss_later: evidenceNumber(later),
              noise: evidenceNumber(noise),
            },
            confidence: 0.6,
            advice: ['It may have converged. If not, check the learning rate schedule and the data.'],
          })
        },
      },
      maxRuns,
    ),
}

function restart(state: PlateauState): void {
  clear(state.block)
  state.medians.length = 0
  state.open = false
}

/** Noise of one block's median, from differences of neighbors so that a slope does not count as noise. */
function noiseOf(medians: readonly number[]): number {
  const differences = medians.slice(1).map((one, index) => one - (medians[index] ?? one))
  const usual = middle(differences)
  return (1.4826 * middle(differences.map((one) => Math.abs(one - usual)))) / Math.SQRT2
}

function middle(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}
