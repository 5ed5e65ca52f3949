/** The figures of a training step that make curves: what the agent keeps of a run, and what the web UI asks for. */
import type { TrainingStep } from './model.ts'

export const ALLOCATOR_FIELDS = [
  'memoryAllocatedBytes',
  'memoryReservedBytes',
  'memoryActiveBytes',
  'memoryInactiveSplitBytes',
  'memoryPeakAllocatedBytes',
  'memoryPeakReservedBytes',
  'allocRetries',
  'oomCount',
] as const satisfies readonly (keyof TrainingStep)[]

export const CURVE_FIELDS = [
  'epoch',
  'loss',
  'learningRate',
  'gradientNorm',
  'throughputPerSecond',
  'stepSeconds',
  ...ALLOCATOR_FIELDS,
] as const satisfies readonly (keyof TrainingStep)[]

/** Before the name of a phase or of a figure of the run's own: `phase:forward`, `custom:accuracy`. */
export const PHASE = 'phase:'
export const CUSTOM = 'custom:'
