/** The trainings that run now, as rows. */
import { numberOf } from '../../../../src/core/json-text.ts'
import { compareRuns, isRunning, type KnownRun, namesIn } from '../../../../src/core/known/runs.ts'
import type { Finding, Reading, RunOutcome } from '../../../../src/core/model.ts'
import type { RunListed } from '../../answers.ts'

export interface TrainingRow {
  readonly id: string
  readonly name: string
  readonly user: string | null
  readonly gpus: readonly string[]
  readonly step: Reading
  readonly totalSteps: Reading
  /** 0–1; null when nobody said how many steps there will be. */
  readonly progress: Reading
  readonly etaSeconds: Reading
  readonly loss: Reading
  readonly throughputPerSecond: Reading
  readonly lastStepAt: Reading
  readonly findings: readonly Finding[]
  /** null while it runs, or when nobody said how it ended. */
  readonly outcome: RunOutcome | null
}

/** By name, so that rows stay where they are. */
export function trainingRows(
  runs: readonly KnownRun[],
  listed: ReadonlyMap<string, RunListed>,
  findings: readonly Finding[],
  present: number,
  /** Of a recording also those that have ended. */
  hasEnded = false,
): readonly TrainingRow[] {
  const shown = runs.filter((run) => hasEnded || isRunning(run, present)).sort(compareRuns)
  const nameOf = namesIn(shown)
  return shown.map((known) => ({ ...rowOf(known, listed.get(known.id), findings), name: nameOf(known) }))
}

function rowOf(known: KnownRun, listed: RunListed | undefined, findings: readonly Finding[]): Omit<TrainingRow, 'name'> {
  const { id, run, step } = known
  const figures = listed?.training ?? (run as RunListed | null)?.training ?? {}
  const told = (name: string) => numberOf(figures[name])
  const lastStep = step?.step ?? told('lastStep')
  const totalSteps = run?.totalSteps ?? null
  return {
    id,
    user: run?.user ?? null,
    gpus: run?.gpus ?? [],
    step: lastStep,
    totalSteps,
    progress: lastStep === null || totalSteps === null || totalSteps <= 0 ? null : Math.min(1, lastStep / totalSteps),
    etaSeconds: run?.endedAt != null ? null : etaOf(lastStep, totalSteps, told('meanStepSeconds') ?? step?.stepSeconds ?? null),
    loss: step ? step.loss : told('loss'),
    throughputPerSecond: step?.throughputPerSecond ?? told('throughputPerSecond'),
    lastStepAt: step?.at ?? told('lastStepAt'),
    findings: findings.filter(({ subject }) => subject.run === id),
    outcome: run?.outcome ?? null,
  }
}

function etaOf(step: Reading, total: Reading, secondsPerStep: Reading): Reading {
  if (step === null || total === null || secondsPerStep === null || !Number.isFinite(secondsPerStep)) return null
  return Math.max(0, total - step) * secondsPerStep
}
