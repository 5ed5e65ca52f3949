/** JSON has no NaN: the agent writes it as text, and a NaN loss must not become a word or unknown. */
import type { StreamEvent } from '../kinds.ts'
import type { Reading, TrainingStep } from '../model.ts'

const isWritten = (value: unknown): value is string => value === 'NaN' || value === 'Infinity' || value === '-Infinity'

export function numberOf(value: unknown): Reading {
  return typeof value === 'number' ? value : isWritten(value) ? Number(value) : null
}

export function revived<Event extends StreamEvent>(event: Event): Event {
  return event.type === 'steps' ? { ...event, steps: event.steps.map(revivedStep) } : event
}

export function revivedStep(step: TrainingStep): TrainingStep {
  const { run, phaseSeconds, custom } = step
  return { ...figuresOf(step), run, phaseSeconds: phaseSeconds && figuresOf(phaseSeconds), custom: custom && figuresOf(custom) }
}

/** The other way, for a channel that is plain JSON. Most steps are finite and pass as they are. */
export function writtenStep(step: TrainingStep): TrainingStep {
  const { phaseSeconds, custom } = step
  const isPlain = [step, phaseSeconds, custom].every((figures) => figures === null || Object.values(figures).every(isJsonSafe))
  return isPlain ? step : { ...written(step), phaseSeconds: phaseSeconds && written(phaseSeconds), custom: custom && written(custom) }
}

const isJsonSafe = (value: unknown): boolean => typeof value !== 'number' || Number.isFinite(value)

function written<Figures extends object>(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, isJsonSafe(value) ? value : String(value)])) as Figures
}

function figuresOf<Figures extends object>(figures: Figures): Figures {
  if (!Object.values(figures).some(isWritten)) return figures
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, isWritten(value) ? Number(value) : value])) as Figures
}
