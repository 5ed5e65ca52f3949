/** The values of a training step that make curves: what the agent keeps, and what the web UI asks for. */
import { rowsOf } from './fields/field.ts'
import { type FigureRow, STEP_FIGURES, type StepFigure } from './fields/step.ts'

const FIGURES = rowsOf<StepFigure, FigureRow>(STEP_FIGURES)

export const ALLOCATOR_FIELDS: readonly StepFigure[] = FIGURES.filter(({ allocator }) => allocator).map(({ field }) => field)

export const CURVE_FIELDS: readonly StepFigure[] = [
  ...FIGURES.filter(({ allocator }) => !allocator).map(({ field }) => field),
  ...ALLOCATOR_FIELDS,
]

/** Prefixes of phases and custom values: `phase:forward`, `custom:accuracy`. */
export const PHASE = 'phase:'
export const CUSTOM = 'custom:'
