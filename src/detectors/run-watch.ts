/** A detector that judges each training run separately; findings end when their run ends or falls silent. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorInput } from '../core/detector-contract.ts'
import type { Finding, Run, TrainingStep } from '../core/model.ts'
import { EndedRuns } from './ended-runs.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'

const RUN_CAP = 32
const SILENT_MS = 3_600_000
const SWEEP_MS = 60_000

export interface WatchedRun<State> {
  readonly id: string
  lastStepAt: number
  /** The rank whose curve stands for the run. */
  leader: number
  lastStep: number
  state: State
}

export interface RunWatch<State> {
  initial(): State
  step(run: WatchedRun<State>, step: TrainingStep, book: FindingBook): readonly Finding[]
  /** The run went back to a checkpoint: its curve starts again. */
  rewind?(run: WatchedRun<State>, book: FindingBook, at: number): readonly Finding[]
  /** The run is dropped: what to forget outside its table entry. */
  gone?(id: string): void
  /** Only steps of the leading rank; true by default. */
  readonly leaderOnly?: boolean
  /** Fewer runs where a state is large. */
  readonly cap?: number
}

export function watchRuns<State>(name: string, watch: RunWatch<State>): Detector {
  const book = new FindingBook(name)
  const leaving: string[] = []
  const past = new EndedRuns()
  const runs = new BoundedMap<string, WatchedRun<State>>(watch.cap ?? RUN_CAP, { onEvict: (id) => leaving.push(id) })
  let sweptAt = 0

  function leave(id: string, at: number, why: string): readonly Finding[] {
    runs.delete(id)
    watch.gone?.(id)
    return book.resolveWhere((finding) => finding.subject.run === id, at, why)
  }

  function takeStep(step: TrainingStep): readonly Finding[] {
    if (past.isPast(step)) return NO_FINDINGS
    let run = runs.get(step.run)
    let ended: readonly Finding[] = NO_FINDINGS
    if (!run) {
      run = runs.keep(step.run, { id: step.run, lastStepAt: step.at, leader: step.rank, lastStep: -1, state: watch.initial() })
      ended = leaving.splice(0).flatMap((id) => [...leave(id, step.at, 'Not followed anymore: too many runs at once.')])
    }
    run.lastStepAt = step.at
    if (step.rank < run.leader) run.leader = step.rank
    if (step.rank === run.leader) {
      if (step.step < run.lastStep && watch.rewind) ended = [...ended, ...watch.rewind(run, book, step.at)]
      run.lastStep = step.step
    } else if (watch.leaderOnly ?? true) return ended
    const findings = watch.step(run, step, book)
    return ended.length === 0 ? findings : [...ended, ...findings]
  }

  /** Runs that stopped silently. */
  function sweep(at: number): readonly Finding[] {
    if (at < sweptAt) sweptAt = at
    if (at - sweptAt < SWEEP_MS || runs.size === 0) return NO_FINDINGS
    sweptAt = at
    const findings: Finding[] = []
    for (const [id, run] of runs)
      if (at - run.lastStepAt > SILENT_MS) findings.push(...leave(id, at, 'The run has reported nothing for an hour.'))
    return findings
  }

  function takeRun(run: Run): readonly Finding[] {
    past.note(run)
    return run.endedAt === null
      ? NO_FINDINGS
      : leave(run.id, run.endedAt, `The run has ended${run.outcome === null ? '' : ` (${run.outcome})`}.`)
  }

  return {
    accept(input: DetectorInput) {
      switch (input.type) {
        case 'step':
          return takeStep(input.step)
        case 'run':
          return takeRun(input.run)
        case 'gpu':
          return sweep(input.sample.at)
        default:
          return NO_FINDINGS
      }
    },
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
