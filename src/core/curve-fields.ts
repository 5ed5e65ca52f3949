/** The figures of a training step that make curves: what the agent keeps of a run, and what the web UI asks for. */
import { rowsOf } from './fields/field.ts'
import { type FigureRow, STEP_FIGURES, type StepFigure } from './fields/step.ts'

const FIGURES = rowsOf<StepFigure, FigureRow>(STEP_FIGURES)

export const ALLOCATOR_FIELDS: readonly StepFigure[] = FIGURES.filter(({ allocator }) => allocator).map(({ field }) => field)

/** The allocator's come last. */
export const CURVE_FIELDS: readonly StepFigure[] = [
  ...FIGURES.filter(({ allocator }) => !allocator).map(({ field }) => field),
  ...ALLOCATOR_FIELDS,
]

/** Before the name of a phase or of a figure of the run's own: `phase:forward`, `custom:accuracy`. */
export const PHASE = 'phase:'
export const CUSTOM = 'custom:'
