/** What the alert engine needs, and what the agent, the commands and the routes may ask of it. */
import type { AlertNews, AlertView, Channel, Delivery, Letter, PastAlert } from '../core/alert-contract.ts'
import type { DetectorDeclaration } from '../core/detector-contract.ts'
import type { AgentState, History, Log, Sink } from '../core/kinds.ts'
import type { Reading } from '../core/model.ts'
import type { AlertPhase } from './alert-record.ts'
import type { DeliveryResult } from './courier.ts'
import type { EngineLimits } from './engine.ts'
import type { HeartbeatHealth } from './heartbeat.ts'
import type { Matcher } from './matcher.ts'
import type { PastRange } from './past-alerts.ts'
import type { AlertValues } from './settings.ts'
import type { Silence } from './silences.ts'

/** `idle`: why nobody would get an alert there now, such as no subscribed browser; then nothing is kept for it. */
export interface AlertChannel extends Channel {
  idle?(): string | null
}

export interface AlertsOptions {
  /** Where alerts are kept; null: only in memory. */
  readonly dir: string | null
  /** By name. Closed with the alerts. */
  readonly channels: ReadonlyMap<string, AlertChannel>
  /** Configured, but could not be opened: a route may name them, but nothing is sent there. */
  readonly unusableChannels?: readonly string[]
  readonly settings: AlertValues
  readonly state: AgentState
  readonly log: Log
  readonly now: () => number
  /** For the charts in messages. */
  readonly history?: History
  /** The running detectors: how long their findings must last, and which charts go with them. */
  readonly detectors?: readonly DetectorDeclaration[]
  /** The name of a run that ended before this agent started; null: unknown. */
  readonly runName?: (run: string) => string | null
  readonly random?: () => number
  /** How often timers are checked; 0: only by sweep(). */
  readonly sweepMs?: number
  readonly deliveryTimeoutMs?: number
  readonly closeGraceMs?: number
  /** How soon a failed disk is tried again. */
  readonly diskRetryMs?: number
  readonly limits?: EngineLimits
}

export interface ChannelHealth {
  readonly channel: string
  readonly results: Readonly<Record<DeliveryResult, number>>
  /** Notices and messages that wait. */
  readonly depth: number
  readonly oldestAgeMs: Reading
  /** Failed attempts to send the first message. */
  readonly attempts: number
  readonly lastFault: string | null
  /** Why nothing arrives there now, such as the answer that refused it; null when it does. */
  readonly problem: string | null
}

export interface AlertsHealth {
  readonly state: 'ok' | 'degraded'
  readonly alerts: Readonly<Record<AlertPhase | 'silenced' | 'acknowledged', number>>
  readonly channels: readonly ChannelHealth[]
  readonly spoolDepth: number
  readonly spoolOldestAgeMs: Reading
  /** Why alerts are not kept on disk now. */
  readonly fault: string | null
  readonly corruptFiles: readonly string[]
  readonly refusedFindings: number
  readonly heartbeat: HeartbeatHealth | null
}

/** `usage` of `2026-W46`: the next one replaces it. */
export interface Edition {
  readonly name: string
  readonly of: string
}

export interface Alerts extends Required<Sink> {
  readonly news: AlertNews
  list(): readonly AlertView[]
  history(range?: PastRange): readonly PastAlert[]
  silence(matchers: readonly Matcher[], until: number, comment: string, by: string): Silence
  /** False: there is no such silence. */
  unsilence(id: string): boolean
  silences(): readonly Silence[]
  /** Null: there is no such alert. */
  acknowledge(fingerprint: string, until: number, by: string): AlertView | null
  /** Null: there is no such alert, or nobody had acknowledged it. */
  unacknowledge(fingerprint: string): AlertView | null
  test(channel: string): Promise<Delivery>
  /** Why nobody would get an alert there now; null when somebody would. */
  idle(channel: string): string | null
  channels(): readonly string[]
  /** Sends an edition once, also across restarts. False: not now, because it cannot be kept, or there is no such channel. */
  post(channel: string, edition: Edition, letters: readonly Letter[]): boolean
  isPosted(edition: Edition): boolean
  health(): AlertsHealth
  /** True: everything so far is on disk. False: the disk cannot be written. */
  flush(): Promise<boolean>
  /** Does everything that is due now, deliveries too. */
  sweep(): Promise<void>
}
