/** What a list of runs shows of each run's training, and its remaining time. */
import { numberOf } from '../core/json-text.ts'
import type { Reading } from '../core/model.ts'
import type { Progress, TrainingFigures } from './progress.ts'
import type { RunRecord } from './run-record.ts'

export interface ListedFigures extends Omit<TrainingFigures, 'custom' | 'phaseShares'> {
  readonly ranks: number
}

export function listedFigures(progress: Progress): ListedFigures {
  const { custom, phaseShares, ...figures } = progress.figures()
  return { ...figures, ranks: progress.ranks.size }
}

/** null: nothing that could be read. */
export function restoredFigures(saved: unknown): ListedFigures | null {
  if (typeof saved !== 'object' || saved === null || !('steps' in saved)) return null
  const numbers = Object.fromEntries(Object.entries(saved).map(([name, value]) => [name, numberOf(value)]))
  return { ...numbers, steps: numbers.steps ?? 0, ranks: numbers.ranks ?? 0 } as unknown as ListedFigures
}

/** null when the number of steps or the time of a step is not known, or when it is over. */
export function etaSeconds(run: RunRecord, figures: Pick<TrainingFigures, 'lastStep' | 'meanStepSeconds'> | null): Reading {
  const { lastStep = null, meanStepSeconds = null } = figures ?? {}
  if (run.endedAt !== null || run.totalSteps === null || lastStep === null || meanStepSeconds === null) return null
  return Math.max(0, run.totalSteps - lastStep) * meanStepSeconds
}
