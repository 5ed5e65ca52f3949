/** What waits for a channel: single notices, and the message made of some of them. Plain and JSON-safe. */
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import type { Severity } from '../core/model.ts'

/** Fields ending in `Ms` are in the observed time of delivery. */
export interface Notice {
  readonly alert: Alert
  readonly severity: Severity
  readonly simulated: boolean
  /** Address of the person whose process it is. */
  readonly owner: string | null
  /** When it was put here. */
  readonly at: number
  readonly queuedMs: number
  /** Does not wait for others. */
  readonly urgent: boolean
  /** Kept back by quiet hours: goes out with the others that were. */
  readonly held: boolean
  /** The conversation it continues; null begins one. */
  readonly thread: string | null
}

/** A message on its way: the same over all tries, unless a trouble in it clears meanwhile. */
export interface SpooledMessage {
  readonly message: Omit<AlertMessage, 'delayedMs'>
  readonly queuedMs: number
  /** Tries that failed. */
  attempts: number
  nextMs: number
  lastReason: string | null
  /** How often its content was changed since it was made. */
  revision: number
}

/** What a channel was told of a trouble last. */
export interface Told {
  /** False: it was refused, too old, or one of "N more". */
  readonly sent: boolean
  readonly ms: number
  readonly severity: Severity
  readonly thread: string
  readonly firedAt: number
}
