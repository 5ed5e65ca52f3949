/** What waits for a channel: single notices, and the message made of some of them. Plain and JSON-safe. */
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import type { Severity } from '../core/model.ts'

/** Fields ending in `Ms` are in the observed time of delivery. */
export interface Notice {
  readonly alert: Alert
  readonly severity: Severity
  readonly simulated: boolean
  /** Address of the owner of the process. */
  readonly owner: string | null
  readonly at: number
  readonly queuedMs: number
  /** Does not wait for others. */
  readonly urgent: boolean
  /** Held back by quiet hours: sent with the others that were. */
  readonly held: boolean
  /** The thread that it continues; null starts one. */
  readonly thread: string | null
}

/** A message on its way: the same for every attempt, unless a problem in it clears in the meantime. */
export interface SpooledMessage {
  readonly message: Omit<AlertMessage, 'delayedMs'>
  readonly queuedMs: number
  /** Failed attempts. */
  attempts: number
  nextMs: number
  lastReason: string | null
  /** How often its content changed since it was made. */
  revision: number
}

/** What a channel last reported of a problem. */
export interface Told {
  /** False: refused, too old, or one of "N more". */
  readonly sent: boolean
  readonly ms: number
  readonly severity: Severity
  readonly thread: string
  readonly firedAt: number
  /** Whether it named a cause. Absent in what an earlier version kept. */
  readonly isExplained?: boolean
}

/** Says that the problem is there, not that it is over. */
export function isOpen(alert: Alert): boolean {
  return alert.status === 'firing' || alert.status === 'repeat'
}

/** Still describes the problem: nobody has heard of it yet. */
export function lateOf(alert: Alert, resolvedAt: Alert['resolvedAt']): Alert {
  return { ...alert, status: 'late', resolvedAt, finding: { ...alert.finding, state: 'resolved' } }
}

/** Joins two finished episodes of one problem: from the first start to the last end. */
export function joined(earlier: Notice | undefined, later: Notice): Notice {
  if (!earlier) return later
  return { ...later, at: earlier.at, queuedMs: earlier.queuedMs, alert: { ...later.alert, firedAt: earlier.alert.firedAt } }
}
