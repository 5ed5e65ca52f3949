/** A detector of one phase that takes too much of the time: judged block by block, so that one slow step is not enough. */

import { BoundedMap } from '../core/bounded-map.ts'
import type { DetectorChart, DetectorKind } from '../core/detector-contract.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import type { Finding, RunLoader, Severity, TrainingStep } from '../core/model.ts'
import { type Phase, type PhaseClock, phasesBy, wholeSeconds } from '../core/step-phases.ts'
import { STEP_TIME_CHART } from './charts.ts'
import { type FindingBook, NO_FINDINGS } from './finding.ts'
import { subjectOfRun, type WatchedRun, watchRuns } from './run-watch.ts'
import { evidenceNumber } from './words.ts'

export interface PhaseShareOptions {
  /** Share of the time from which it is information, and from which it is a warning. */
  readonly ratio: number
  readonly warningRatio: number
  /** Steps of a run that are not judged: workers start, kernels are compiled. */
  readonly firstSteps: number
  /** Steps of a block, at least. */
  readonly steps: number
  /** Blocks in a row above the ratio before it is reported, and below before it is over. */
  readonly blocks: number
}

export interface PhaseShareKind {
  readonly name: string
  readonly about: string
  readonly phase: Phase
  /** Not part of every step: a block begins and ends right after it, so that it holds as many of them as of the steps between. */
  readonly occasional?: true
  /** Judged by the rank with the least of it: where one rank has none, the others wait for that one. */
  readonly leastOfRanks?: true
  readonly says: (run: string, share: string, seconds: string) => string
  readonly over: (run: string, share: string) => string
  /** `loader`: how the run loads its data, where it says. */
  readonly advice: (ratio: number, loader: RunLoader | null) => readonly string[]
  readonly charts?: readonly DetectorChart[]
  readonly defaults: PhaseShareOptions
}

interface RankSums {
  readonly rank: number
  phase: number
  whole: number
  steps: number
}

interface Block {
  /** Of the run, all in all. */
  seen: number
  clock: PhaseClock | null
  steps: number
  ranks: RankSums[]
  /** Times that an occasional phase came since the block began; null: it did not begin yet. */
  times: number | null
  above: number
  below: number
  open: boolean
}

const MOST_RANKS = 256
const MOST_LOADERS = 256
const TIMES_PER_BLOCK = 2
/** Below this part of the ratio it is over. */
const OVER = 0.75

export function phaseShare(kind: PhaseShareKind): DetectorKind<PhaseShareOptions> {
  const { name, about, phase, defaults } = kind
  return {
    name,
    about,
    severities: ['info', 'warning'],
    inputs: ['step', 'run', 'gpu'],
    // Time that is lost, not a fault: nobody has to run.
    patienceSeconds: 300,
    charts: kind.charts ?? [STEP_TIME_CHART],
    defaults,
    create: (options, maxRuns) => {
      const loaders = new BoundedMap<string, RunLoader>(MOST_LOADERS)
      return watchRuns<Block>(
        name,
        {
          leaderOnly: kind.leastOfRanks !== true,
          initial: (open) => ({ seen: 0, clock: null, steps: 0, ranks: [], times: kind.occasional ? null : 0, above: 0, below: 0, open }),
          step(run, step, book) {
            const { state } = run
            const isLeader = step.rank === run.leader
            if (isLeader) state.seen++
            if (state.seen <= options.firstSteps || !take(state, step, kind)) return NO_FINDINGS
            const came = phasesBy('host', step.phaseSeconds)?.[phase] ?? 0
            if (kind.occasional && came > 0) state.times = state.times === null ? 0 : state.times + 1
            if (kind.occasional && state.times === null) reset(state, null)
            else if (kind.occasional && state.times === 0 && came > 0) reset(state, 0)
            if (isLeader) state.steps++
            if (state.steps < options.steps || (kind.occasional && !(came > 0 && (state.times ?? 0) >= TIMES_PER_BLOCK))) return NO_FINDINGS
            return judge(run, step, book, kind, options, loaders.get(run.id) ?? null)
          },
          about: ({ id, loader }) => {
            if (loader) loaders.set(id, loader)
          },
          gone: (id) => loaders.delete(id),
        },
        maxRuns,
      )
    },
  }
}

/** False: the step says nothing of it. */
function take(state: Block, step: TrainingStep, { phase, occasional }: PhaseShareKind): boolean {
  const byGpu = occasional ? null : phasesBy('gpu', step.phaseSeconds)
  // Once a run has the GPU's clock, steps without it say less.
  if (byGpu !== null && state.clock !== 'gpu') {
    reset(state, state.times)
    state.clock = 'gpu'
  }
  const phases = state.clock === 'gpu' ? byGpu : phasesBy('host', step.phaseSeconds)
  if (phases === null || (!occasional && phases[phase] === undefined)) return false
  const aside = occasional ? 0 : (phases.evaluation ?? 0) + (phases.checkpoint ?? 0)
  const whole = wholeSeconds(step, phases) - aside
  if (!(whole > 0)) return false
  let sums = state.ranks.find(({ rank }) => rank === step.rank)
  if (!sums) {
    if (state.ranks.length >= MOST_RANKS) return false
    sums = { rank: step.rank, phase: 0, whole: 0, steps: 0 }
    state.ranks.push(sums)
  }
  sums.phase += phases[phase] ?? 0
  sums.whole += whole
  sums.steps++
  return true
}

function reset(state: Block, times: number | null): void {
  state.steps = 0
  state.ranks = []
  state.times = times
}

function judge(
  run: WatchedRun<Block>,
  step: TrainingStep,
  book: FindingBook,
  { says, over, advice, occasional }: PhaseShareKind,
  options: PhaseShareOptions,
  loader: RunLoader | null,
): readonly Finding[] {
  const { state } = run
  const [least] = state.ranks.filter(({ steps }) => steps * 2 >= state.steps).sort((a, b) => a.phase / a.whole - b.phase / b.whole)
  reset(state, occasional ? 0 : state.times)
  if (!least) return NO_FINDINGS
  const ratio = least.phase / least.whole
  const subject = subjectOfRun(run.id)
  const isAbove = ratio >= options.ratio * (state.open ? OVER : 1)
  state.above = isAbove ? state.above + 1 : 0
  state.below = isAbove ? 0 : state.below + 1
  if (!isAbove) {
    if (!state.open || state.below < options.blocks) return NO_FINDINGS
    state.open = false
    return book.resolve(book.key(subject), step.at, over(run.id, formatPercent(ratio)))
  }
  if (!state.open && state.above < options.blocks) return NO_FINDINGS
  state.open = true
  const severity: Severity = ratio >= options.warningRatio ? 'warning' : 'info'
  if (!book.due(book.key(subject), step.at, severity)) return NO_FINDINGS
  const [phaseSeconds, wholeSecondsMean] = [least.phase / least.steps, least.whole / least.steps]
  return book.raise(subject, step.at, {
    severity,
    message: says(run.id, formatPercent(ratio), `${formatDuration(phaseSeconds * 1000)} of ${formatDuration(wholeSecondsMean * 1000)}`),
    evidence: {
      phase_ratio: evidenceNumber(ratio),
      phase_seconds: evidenceNumber(phaseSeconds),
      step_seconds: evidenceNumber(wholeSecondsMean),
    },
    confidence: 0.9,
    advice: advice(ratio, loader),
  })
}
