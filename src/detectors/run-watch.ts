/** A detector that judges each training run separately; findings end when their run ends or falls silent. */
import { BoundedMap } from '../core/bounded-map.ts'
import { type Detector, type DetectorInput, MOST_RUNS } from '../core/detector-contract.ts'
import type { Finding, Run, Severity, TrainingStep } from '../core/model.ts'
import { EndedRuns } from './ended-runs.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { RunTable } from './run-table.ts'

const SILENT_MS = 3_600_000
const SWEEP_MS = 60_000
const SILENT = 'The run has reported nothing for an hour.'

export interface WatchedRun<State> {
  readonly id: string
  lastStepAt: number
  /** The rank whose curve stands for the run. */
  leader: number
  lastStep: number
  state: State
}

export interface RunWatch<State> {
  /** `isOpen`: a finding about the run is open, whose state was lost. */
  initial(isOpen: boolean): State
  step(run: WatchedRun<State>, step: TrainingStep, book: FindingBook): readonly Finding[]
  /** The run went back to a checkpoint: its curve starts again. */
  rewind?(run: WatchedRun<State>, book: FindingBook, at: number): readonly Finding[]
  /** What another detector says of the run. */
  finding?(run: WatchedRun<State>, finding: Finding, book: FindingBook): readonly Finding[]
  /** What is known of the run, apart from its steps. */
  about?(run: Run): void
  /** The run is dropped: what to forget outside its table entry. */
  gone?(id: string): void
  /** Only steps of the leading rank; true by default. */
  readonly leaderOnly?: boolean
  /** Steps that arrive after the end of their run are judged as well, by themselves: what they show is reported once and is over at once. */
  readonly judgesLate?: true
}

/** A run that is over. */
interface LateRun<State> {
  /** null: none of its steps came late yet. */
  run: WatchedRun<State> | null
  /** The worst that was reported of it. */
  said: Severity | null
}

export function watchRuns<State>(name: string, watch: RunWatch<State>, maxRuns?: number): Detector {
  const book = new FindingBook(name)
  const past = new EndedRuns(maxRuns)
  const isOpen = (id: string) => book.some(({ subject }) => subject.run === id)
  const runs = new RunTable<WatchedRun<State>>({ cap: maxRuns, lastAt: (run) => run.lastStepAt, isOpen })
  const late = new BoundedMap<string, LateRun<State>>(maxRuns ?? MOST_RUNS)
  let sweptAt = 0

  function leave(id: string, at: number, why: string): readonly Finding[] {
    runs.delete(id)
    watch.gone?.(id)
    return book.resolveWhere((finding) => finding.subject.run === id, at, why)
  }

  function takeStep(step: TrainingStep): readonly Finding[] {
    if (past.isPast(step)) return watch.judgesLate ? takeLate(step) : NO_FINDINGS
    const run = runs.get(step.run) ?? admit(step)
    return run === null ? NO_FINDINGS : judge(run, step)
  }

  function takeLate(step: TrainingStep): readonly Finding[] {
    const known = late.get(step.run) ?? late.keep(step.run, { run: null, said: null })
    known.run ??= fresh(step)
    const worse = judge(known.run, step).filter((finding) => finding.state === 'active' && isWorse(finding.severity, known.said))
    const ends = book.resolveWhere((finding) => finding.subject.run === step.run, step.at, 'The run had ended when this step arrived.')
    if (worse.length === 0) return NO_FINDINGS
    known.said = worstOf(worse)
    return [...worse, ...ends]
  }

  function judge(run: WatchedRun<State>, step: TrainingStep): readonly Finding[] {
    let ended: readonly Finding[] = NO_FINDINGS
    run.lastStepAt = step.at
    if (step.rank < run.leader) run.leader = step.rank
    if (step.rank === run.leader) {
      if (step.step < run.lastStep && watch.rewind) ended = watch.rewind(run, book, step.at)
      run.lastStep = step.step
    } else if (watch.leaderOnly ?? true) return ended
    const findings = watch.step(run, step, book)
    return ended.length === 0 ? findings : [...ended, ...findings]
  }

  function admit(step: TrainingStep): WatchedRun<State> | null {
    return runs.admit(step.run, step.at, () => fresh(step))
  }

  function fresh({ run: id, rank, at }: TrainingStep): WatchedRun<State> {
    return { id, lastStepAt: at, leader: rank, lastStep: -1, state: watch.initial(isOpen(id)) }
  }

  /** Runs that stopped silently. */
  function sweep(at: number): readonly Finding[] {
    if (at < sweptAt) sweptAt = at
    if (at - sweptAt < SWEEP_MS || runs.size === 0) return NO_FINDINGS
    sweptAt = at
    const findings: Finding[] = []
    for (const id of runs.dropSilent(at, SILENT_MS)) findings.push(...leave(id, at, SILENT))
    for (const [id, run] of runs) if (at - run.lastStepAt > SILENT_MS) findings.push(...leave(id, at, SILENT))
    return findings
  }

  function takeRun(run: Run): readonly Finding[] {
    past.note(run)
    if (run.endedAt === null) {
      late.delete(run.id)
      watch.about?.(run)
      return NO_FINDINGS
    }
    const ended = leave(run.id, run.endedAt, `The run has ended${run.outcome === null ? '' : ` (${run.outcome})`}.`)
    if (watch.judgesLate && ended.length > 0) late.set(run.id, { run: null, said: worstOf(ended) })
    return ended
  }

  function takeFinding(finding: Finding): readonly Finding[] {
    const run = finding.subject.run === null ? null : runs.get(finding.subject.run)
    return (run && watch.finding?.(run, finding, book)) ?? NO_FINDINGS
  }

  return {
    accept(input: DetectorInput) {
      switch (input.type) {
        case 'step':
          return takeStep(input.step)
        case 'run':
          return takeRun(input.run)
        case 'finding':
          return takeFinding(input.finding)
        case 'gpu':
          return sweep(input.sample.at)
        default:
          return NO_FINDINGS
      }
    },
    unfollowed: () => runs.missed(),
    snapshot: () => ({ runs: runs.saved(), findings: book.snapshot(), past: past.snapshot(), late: late.saved(), sweptAt }),
    restore(state) {
      const saved = state as { runs: unknown; findings: unknown; past: unknown; late?: unknown; sweptAt: number }
      runs.load(saved.runs)
      book.restore(saved.findings)
      past.restore(saved.past)
      if (saved.late) late.load(saved.late)
      sweptAt = saved.sweptAt
    },
  }
}

export function subjectOfRun(id: string, rank: number | null = null) {
  return subjectOf({ run: id, rank })
}

const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']

function isWorse(severity: Severity, than: Severity | null): boolean {
  return than === null || SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(than)
}

function worstOf(findings: readonly Finding[]): Severity | null {
  return findings.reduce<Severity | null>((worst, { severity }) => (isWorse(severity, worst) ? severity : worst), null)
}
