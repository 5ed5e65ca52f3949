/** The present of what is shown: of a recording it is the moment that was played last. Reading it subscribes. */
import { now } from './agent-clock.ts'
import { playedAt } from './store.ts'

export function present(): number {
  return playedAt.value ?? now.value
}
