/** A detector that judges each training run separately; findings end when their run ends or falls silent. */
import type { Detector, DetectorInput } from '../core/detector-contract.ts'
import type { Finding, Run, TrainingStep } from '../core/model.ts'
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
}

export function watchRuns<State>(name: string, watch: RunWatch<State>, maxRuns?: number): Detector {
  const book = new FindingBook(name)
  const past = new EndedRuns(maxRuns)
  const isOpen = (id: string) => book.some(({ subject }) => subject.run === id)
  const runs = new RunTable<WatchedRun<State>>({ cap: maxRuns, lastAt: (run) => run.lastStepAt, isOpen })
  let sweptAt = 0

  function leave(id: string, at: number, why: string): readonly Finding[] {
    runs.delete(id)
    watch.gone?.(id)
    return book.resolveWhere((finding) => finding.subject.run === id, at, why)
  }

  function takeStep(step: TrainingStep): readonly Finding[] {
    if (past.isPast(step)) return NO_FINDINGS
    const run = runs.get(step.run) ?? admit(step)
    if (run === null) return NO_FINDINGS
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

  function admit({ run: id, rank, at }: TrainingStep): WatchedRun<State> | null {
    return runs.admit(id, at, () => ({ id, lastStepAt: at, leader: rank, lastStep: -1, state: watch.initial(isOpen(id)) }))
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
    if (run.endedAt === null) watch.about?.(run)
    return run.endedAt === null
      ? NO_FINDINGS
      : leave(run.id, run.endedAt, `The run has ended${run.outcome === null ? '' : ` (${run.outcome})`}.`)
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
    snapshot: () => ({ runs: runs.saved(), findings: book.snapshot(), past: past.snapshot(), sweptAt }),
    restore(state) {
      const saved = state as { runs: unknown; findings: unknown; past: unknown; sweptAt: number }
      runs.load(saved.runs)
      book.restore(saved.findings)
      past.restore(saved.past)
      sweptAt = saved.sweptAt
    },
  }
}

export function subjectOfRun(id: string, rank: number | null = null) {
  return subjectOf({ run: id, rank })
}
