/** The agent's time, as this page knows it. */
import { signal } from '@preact/signals'
import { AgentClock } from '../../../src/core/known/agent-clock.ts'

export const agentClock = new AgentClock(Date.now)

export function agentNow(): number {
  return agentClock.now()
}

/** Advances once a second while the page is seen; what shows an age reads it. */
export const now = signal(agentNow())

let timer: ReturnType<typeof setInterval> | null = null

export function runClock(isSeen: boolean): void {
  if (timer !== null) clearInterval(timer)
  timer = isSeen ? setInterval(() => (now.value = agentNow()), 1000) : null
  if (isSeen) now.value = agentNow()
}
