/** Alerts, and what a channel is: one file that fulfills it. */
import type { Finding, FindingSubject, ProcessView, Reading, Severity } from './model.ts'

/**
 * The result of a delivery. `answer`: from the server, secrets masked; `retry`: whether the failure passes by itself. A refusal needs somebody to
 * repair something, so it is tried again too; only what is `hopeless`, such as a message without a recipient, is given up.
 */
export type Delivery =
  | { readonly ok: true; readonly answer: string }
  | { readonly ok: false; readonly retry: boolean; readonly reason: string; readonly hopeless?: boolean }

/** `late`: it fired and cleared before it could be delivered. */
export type AlertStatus = 'firing' | 'repeat' | 'resolved' | 'late'

/** A finding, as people are notified of it. */
export interface Alert {
  readonly fingerprint: string
  readonly status: AlertStatus
  /** The latest. */
  readonly finding: Finding
  readonly firedAt: number
  readonly resolvedAt: Reading
  readonly gpuLabel: string | null
  /** What people call its run; null: not about one. Absent in messages that an earlier version kept. */
  readonly runName?: string | null
  readonly gpuName: string | null
  readonly process: ProcessView | null
  /** null: nothing to draw. */
  readonly series: AlertSeries | null
}

export interface AlertSeries {
  readonly title: string
  readonly unit: string
  readonly at: readonly number[]
  readonly values: readonly Reading[]
  /** A horizontal line: the capacity, the slowdown temperature. */
  readonly limit: Reading
}

/** Who takes care of it, and until when there are no reminders. */
export interface Acknowledgement {
  readonly at: number
  readonly until: number
  readonly by: string
  /** A worse severity notifies again. */
  readonly severity: Severity
}

/** An alert as screens show it. */
export interface AlertView {
  readonly fingerprint: string
  readonly state: 'pending' | 'firing' | 'resolved'
  readonly finding: Finding
  readonly firedAt: Reading
  readonly resolvedAt: Reading
  readonly flapping: boolean
  readonly simulated: boolean
  readonly acknowledged: Acknowledgement | null
  /** Why nobody is notified of it now. */
  readonly mutedBy: 'silence' | 'maintenance' | 'acknowledged' | 'simulated' | null
  /** Id of the silence that covers it. */
  readonly silence: string | null
  /** Channels that were notified that it fires. */
  readonly told: readonly string[]
  /** Channels with a message about it waiting or on its way. */
  readonly waiting: readonly string[]
  /** null: not about a GPU, or an unknown one. */
  readonly gpuLabel: string | null
  /** From before the agent started, and not seen since. */
  readonly unconfirmed: boolean
}

/** An alert that is over. */
export interface PastAlert {
  readonly fingerprint: string
  readonly detector: string
  readonly subject: FindingSubject
  readonly severity: Severity
  readonly message: string
  /** When it began: the `since` of its finding. */
  readonly since: number
  readonly firedAt: number
  readonly resolvedAt: number
  readonly simulated: boolean
  readonly acknowledgedBy: string | null
}

/** Changes of alerts since the last event. */
export interface AlertsEvent {
  readonly type: 'alerts'
  readonly at: number
  /** New or changed. */
  readonly alerts: readonly AlertView[]
  /** Fingerprints of alerts that are not kept anymore. */
  readonly gone: readonly string[]
  /** More changed than one event holds: ask for the whole list. */
  readonly hasMore: boolean
  readonly silencesChanged: boolean
}

/** Reports changes of alerts; costs nothing while nobody follows. */
export interface AlertNews {
  /** Until the returned function is called. */
  follow(listener: (event: AlertsEvent) => void): () => void
}

/** A message for people that is about no alert. */
export interface Letter {
  readonly id: string
  readonly subject: string
  /** Addresses; none: the recipients of the channel. */
  readonly to: readonly string[]
  readonly parts: readonly LetterPart[]
}

/** The first row of a table is its head. */
export type LetterPart =
  | { readonly text: string }
  | { readonly list: readonly string[] }
  | { readonly table: readonly (readonly string[])[] }

/** One message of a channel: the alerts of one host that belong together. */
export interface AlertMessage {
  /** The same for all tries: idempotency key, e-mail Message-ID. */
  readonly id: string
  /** The same for firing, repeat and resolved of one finding. */
  readonly threadId: string
  /** False: an earlier message of this thread was delivered on this channel. */
  readonly isFirst: boolean
  readonly kind: 'alerts' | 'test' | 'heartbeat' | 'letter'
  /** Of a letter, which has no alerts. */
  readonly letter?: Letter
  readonly host: string
  readonly at: number
  readonly severity: Severity
  readonly alerts: readonly Alert[]
  /** How many more were held back by the rate limit. */
  readonly suppressed: number
  /** How late the delivery is; 0 at the first try. */
  readonly delayedMs: number
  /** Addresses of owners, in addition to the recipients of the channel. */
  readonly owners: readonly string[]
  readonly links: { readonly dashboard: string | null; readonly silence: string | null }
  /** Any of it is simulated. */
  readonly simulated: boolean
}

/** Delivers a message. Dedupe, retry, silence and rate limits are stages before it. */
export interface Channel {
  readonly name: string
  deliver(message: AlertMessage, signal: AbortSignal): Promise<Delivery>
}
