/** Training runs as rows of a list: what the agent keeps of them, brought up to date with what the stream tells. */

import { numberOf } from '../../../../src/core/json-text.ts'
import type { Provenance, Reading, TrainingStep } from '../../../../src/core/model.ts'
import type { RunListed } from '../../answers.ts'

export type RunState = 'running' | 'silent' | 'success' | 'oom' | 'nan' | 'killed' | 'failed' | 'ended' | 'unended'

export interface RunRow {
  readonly id: string
  readonly name: string
  readonly user: string | null
  readonly framework: string | null
  readonly gpus: readonly string[]
  readonly state: RunState
  /** null of a run that is only heard of in the stream. */
  readonly startedAt: Reading
  readonly durationMs: Reading
  readonly step: Reading
  readonly totalSteps: Reading
  readonly progress: Reading
  readonly etaMs: Reading
  readonly loss: Reading
  readonly throughputPerSecond: Reading
  readonly lastStepAt: Reading
  /** The agent keeps no curve of it: it is replayed. */
  readonly isSeenOnly: boolean
  readonly provenance: Provenance
}

/** A run that takes no step for this long, or for twenty of its steps, has fallen silent. */
const SILENT_MS = 60_000
const SILENT_STEPS = 20

export function isRunning(state: RunState): boolean {
  return state === 'running' || state === 'silent'
}

/** Running ones first, then the latest; those that are not stored have no beginning, and are sorted by name. */
export function runRows(
  listed: readonly RunListed[],
  latest: ReadonlyMap<string, TrainingStep>,
  now: number,
  /** The recording that they are from is over. */
  isOver = false,
): readonly RunRow[] {
  const known = new Set(listed.map(({ id }) => id))
  const seen = [...latest.values()].filter(({ run }) => !known.has(run))
  const rows = [...listed.map((run) => keptRow(run, latest.get(run.id), now, isOver)), ...seen.map((step) => seenRow(step, now))]
  return rows.sort(
    (a, b) =>
      Number(isRunning(b.state)) - Number(isRunning(a.state)) ||
      (b.startedAt ?? 0) - (a.startedAt ?? 0) ||
      a.id.localeCompare(b.id, undefined, { numeric: true }),
  )
}

export function keptRow(run: RunListed, step: TrainingStep | undefined, now: number, isOver = false): RunRow {
  const told = (name: string) => numberOf(run.training?.[name])
  // Steps after the end belong to a later life of the run, which the list will show.
  const isLater = step !== undefined && run.endedAt === null && step.at >= (told('lastStepAt') ?? 0)
  const lastStep = isLater ? step.step : told('lastStep')
  const lastStepAt = isLater ? step.at : told('lastStepAt')
  const { totalSteps = null } = run
  const perStep = told('meanStepSeconds') ?? step?.stepSeconds ?? null
  const left = totalSteps === null || lastStep === null ? null : Math.max(0, totalSteps - lastStep)
  return {
    id: run.id,
    name: run.name,
    user: run.user,
    framework: run.framework ?? null,
    gpus: run.gpus,
    state: run.endedAt !== null ? (run.outcome ?? 'ended') : isOver ? 'unended' : livelyState(lastStepAt, perStep, now),
    startedAt: run.startedAt,
    durationMs: (run.endedAt ?? now) - run.startedAt,
    step: lastStep,
    totalSteps,
    progress: totalSteps === null || lastStep === null || totalSteps <= 0 ? null : Math.min(1, lastStep / totalSteps),
    etaMs: run.endedAt !== null || left === null || perStep === null ? null : left * perStep * 1000,
    loss: isLater ? (step.loss ?? told('loss')) : told('loss'),
    throughputPerSecond: isLater ? (step.throughputPerSecond ?? told('throughputPerSecond')) : told('throughputPerSecond'),
    lastStepAt,
    isSeenOnly: false,
    provenance: run.provenance,
  }
}

function seenRow(step: TrainingStep, now: number): RunRow {
  return {
    id: step.run,
    name: step.run,
    user: null,
    framework: null,
    gpus: [],
    state: livelyState(step.at, step.stepSeconds, now),
    startedAt: null,
    durationMs: null,
    step: step.step,
    totalSteps: null,
    progress: null,
    etaMs: null,
    loss: step.loss,
    throughputPerSecond: step.throughputPerSecond,
    lastStepAt: step.at,
    isSeenOnly: true,
    provenance: 'replay',
  }
}

function livelyState(lastStepAt: Reading, secondsPerStep: Reading, now: number): RunState {
  if (lastStepAt === null) return 'running'
  return now - lastStepAt > Math.max(SILENT_MS, SILENT_STEPS * 1000 * (secondsPerStep ?? 0)) ? 'silent' : 'running'
}

export type StateFilter = 'all' | 'running' | 'ended'

/** Every word must occur somewhere in what the row shows. */
export function filteredRows(rows: readonly RunRow[], text: string, state: StateFilter): readonly RunRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return rows.filter((row) => {
    if (state !== 'all' && isRunning(row.state) !== (state === 'running')) return false
    const said = [row.id, row.name, row.user, row.framework, row.state, ...row.gpus.map((gpu) => `gpu ${gpu}`)].join(' ').toLowerCase()
    return words.every((word) => said.includes(word))
  })
}

export const MOST_COMPARED = 6

export function parseRuns(text: string | undefined): readonly string[] {
  return [...new Set((text ?? '').split(',').filter((id) => id !== ''))].slice(0, MOST_COMPARED)
}
