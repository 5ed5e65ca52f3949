import type { TrainingStep } from '../../../../src/core/model.ts'

/** A step with nothing but what is given. */
export function stepWith(parts: Partial<TrainingStep>): TrainingStep {
  return {
    kind: 'step',
    at: 0,
    run: 'r',
    rank: 0,
    step: 0,
    epoch: null,
    loss: null,
    learningRate: null,
    gradientNorm: null,
    throughputPerSecond: null,
    stepSeconds: null,
    memoryAllocatedBytes: null,
    memoryReservedBytes: null,
    memoryActiveBytes: null,
    memoryInactiveSplitBytes: null,
    memoryPeakAllocatedBytes: null,
    memoryPeakReservedBytes: null,
    allocRetries: null,
    oomCount: null,
    phaseSeconds: null,
    custom: null,
    ...parts,
  }
}
