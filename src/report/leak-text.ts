/** The verdict on a leak, for a terminal. */
import { formatBytes, formatClock, formatDuration, printable } from '../core/format.ts'
import type { LeakVerdict } from './leak-verdicts.ts'

const SIGNS = { leak: 'LEAK', 'no leak': 'ok', 'too short to tell': 'too short to tell', 'not known': 'not known' } as const

export function leakText(verdict: LeakVerdict): string {
  const { answer, confidence, since, bytesPerMinute, grownBytes, watchedSeconds, advice } = verdict
  const lines = [`[${SIGNS[answer]}] ${printable(verdict.message)}`]
  if (answer !== 'leak') return lines.concat(advice.map((line) => `   ${line}`)).join('\n')
  const pace = bytesPerMinute === null ? '' : `, ${formatBytes(bytesPerMinute)} a minute`
  lines.push(
    `   Confidence: ${(confidence ?? 0).toFixed(2)}`,
    `   Growth: ${formatBytes(grownBytes)} in ${formatDuration(watchedSeconds * 1000)}${pace}${since === null ? '' : `; it began at ${formatClock(since, Date.now())}`}`,
    ...advice.map((line) => `   ${line}`),
  )
  return lines.join('\n')
}
