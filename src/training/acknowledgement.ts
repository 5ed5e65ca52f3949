/** What counts as an agent's answer about a run. Anybody may answer 200 at its address: a proxy, another program. */
import type { Answer } from '../core/agent-client.ts'
import type { BatchOutcome } from './batch.ts'

/** Everything else, such as a wrong token, can be repaired while the steps wait. */
const FINAL: readonly number[] = [400, 409, 413, 415, 422]

/** The agent has the run, its end or its report. */
export function isAcknowledged({ status, body }: Answer, run: string): boolean {
  return status === 200 && (body as { id?: unknown } | null | undefined)?.id === run
}

/** What became of `count` steps; null unless the answer names the run and accounts for every one of them. */
export function acknowledgedSteps({ status, body }: Answer, run: string, count: number): BatchOutcome | null {
  const outcome = body as BatchOutcome | null | undefined
  if (status !== 200 || outcome?.run !== run) return null
  const counts = [outcome.accepted, outcome.duplicates, outcome.rejected_count]
  const isWhole = counts.every((one) => Number.isInteger(one) && one >= 0)
  return isWhole && counts.reduce((sum, one) => sum + one, 0) === count ? outcome : null
}

/** The agent itself will never take it. */
export function isRefusedByAgent({ status, code }: Answer): boolean {
  return code !== null && FINAL.includes(status)
}

/** Why this is no acknowledgement, in words. */
export function notAcknowledged(answer: Answer, url: string): string {
  return isStranger(answer) ? `what answers at ${url} is not a gpuwarden agent, or an older one: ${answer.message}` : answer.message
}

/** An answer came, and it is not an agent's. */
export function isStranger({ code }: Answer): boolean {
  return code === null
}
