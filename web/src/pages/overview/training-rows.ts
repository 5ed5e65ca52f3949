/** The trainings that run now, as rows: from the list of runs and the latest steps of the stream. */

import { numberOf } from '../../../../src/core/json-text.ts'
import type { Finding, Reading, Run, TrainingStep } from '../../../../src/core/model.ts'
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
}

/** A run that nobody announced and that sent nothing for this long is taken for ended. */
const FORGET_MS = 2 * 60_000

/** By name, so that rows stay where they are. */
export function trainingRows(
  runs: Iterable<Run>,
  listed: ReadonlyMap<string, RunListed>,
  steps: ReadonlyMap<string, TrainingStep>,
  findings: readonly Finding[],
  now: number,
): readonly TrainingRow[] {
  const rows: TrainingRow[] = []
  const announced = new Set<string>()
  for (const run of runs) {
    announced.add(run.id)
    if (run.endedAt === null) rows.push(rowOf(run, listed.get(run.id), steps.get(run.id), findings))
  }
  for (const step of steps.values()) {
    if (announced.has(step.run) || now - step.at > FORGET_MS) continue
    rows.push(rowOf(unannounced(step), undefined, step, findings))
  }
  return rows.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }) || a.id.localeCompare(b.id))
}

function rowOf(run: Run, listed: RunListed | undefined, step: TrainingStep | undefined, findings: readonly Finding[]): TrainingRow {
  const figures = listed?.training ?? (run as RunListed).training ?? {}
  const known = (name: string) => numberOf(figures[name])
  const lastStep = step?.step ?? known('lastStep')
  const { totalSteps } = run
  return {
    id: run.id,
    name: run.name,
    user: run.user,
    gpus: run.gpus,
    step: lastStep,
    totalSteps,
    progress: lastStep === null || totalSteps === null || totalSteps <= 0 ? null : Math.min(1, lastStep / totalSteps),
    etaSeconds: etaOf(lastStep, totalSteps, known('meanStepSeconds') ?? step?.stepSeconds ?? null),
    loss: step ? step.loss : known('loss'),
    throughputPerSecond: step?.throughputPerSecond ?? known('throughputPerSecond'),
    lastStepAt: step?.at ?? known('lastStepAt'),
    findings: findings.filter(({ subject }) => subject.run === run.id),
  }
}

/** Of a recording or the demo: only its steps are known. */
function unannounced({ run, at }: TrainingStep): Run {
  return {
    id: run,
    name: run,
    host: null,
    user: null,
    pid: null,
    gpus: [],
    worldSize: null,
    totalSteps: null,
    startedAt: at,
    endedAt: null,
    outcome: null,
  }
}

function etaOf(step: Reading, total: Reading, secondsPerStep: Reading): Reading {
  if (step === null || total === null || secondsPerStep === null || !Number.isFinite(secondsPerStep)) return null
  return Math.max(0, total - step) * secondsPerStep
}
