/** The present of what is shown: of a recording it is the moment that was played last. Reading it subscribes. */
import { now } from './agent-clock.ts'
import { gpus, isReplay } from './store.ts'

export function present(): number {
  if (!isReplay.value) return now.value
  const latest = Math.max(0, ...gpus.value.map((cell) => cell.sample.value?.at ?? 0))
  return latest === 0 ? now.value : latest
}
