/** The agent's time, as this page knows it: the clocks of two machines need not agree. */
import { signal } from '@preact/signals'

let offsetMs = 0

export function agentNow(): number {
  return Date.now() + offsetMs
}

/** `at`: what the agent said the time is, just now. */
export function setAgentTime(at: number): void {
  offsetMs = at - Date.now()
  now.value = agentNow()
}

/** Advances once a second while the page is seen; what shows an age reads it. */
export const now = signal(agentNow())

let timer: ReturnType<typeof setInterval> | null = null

export function runClock(isSeen: boolean): void {
  if (timer !== null) clearInterval(timer)
  timer = isSeen ? setInterval(() => (now.value = agentNow()), 1000) : null
  if (isSeen) now.value = agentNow()
}
