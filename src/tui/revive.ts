import type { HubEvent } from '../core/kinds.ts'
import type { TrainingStep } from '../core/model.ts'

/** JSON has no NaN: the agent writes it as text, and a loss that is NaN must not be taken for a word. */
export function revived(event: HubEvent): HubEvent {
  return event.type === 'steps' ? { ...event, steps: event.steps.map(revivedStep) } : event
}

function revivedStep(step: TrainingStep): TrainingStep {
  return Object.fromEntries(
    Object.entries(step).map(([name, value]) => [name, /^(NaN|-?Infinity)$/.test(String(value)) && name !== 'run' ? Number(value) : value]),
  ) as unknown as TrainingStep
}
