import type { TrainingStep } from '../../../../src/core/model.ts'
import { NO_FIGURES } from '../../../../src/core/record.ts'

/** A step with nothing but what is given. */
export function stepWith(parts: Partial<TrainingStep>): TrainingStep {
  return {
    kind: 'step',
    at: 0,
    run: 'r',
    rank: 0,
    step: 0,
    ...NO_FIGURES,
    phaseSeconds: null,
    custom: null,
    ...parts,
  }
}
