/** Everything that a campaign saw from outside, for the auditor. Times are those of the campaign's own clock, in ms. */
import type { Ailment, Play } from './schedule.ts'

export interface Life {
  readonly startedAt: number
  endedAt: number
  /** `crashed`: nobody asked it to. */
  end: 'killed' | 'stopped' | 'crashed' | null
}

export interface Span {
  readonly from: number
  to: number
}

/** One message at a receiver. */
export interface Receipt {
  readonly channel: 'webhook' | 'mail'
  readonly id: string
  readonly at: number
  /** Whether the receiver said that it has it. */
  isAcknowledged: boolean
  /** Whether the sender was certainly there to hear it: only then it may not send the message again. */
  isHeard: boolean
  readonly detectors: readonly string[]
  readonly statuses: readonly string[]
  /** Of a webhook; a mail is read by its headers and its text. */
  readonly alerts: readonly ReceivedAlert[]
  readonly gpus: readonly string[]
  readonly text: string
}

export interface ReceivedAlert {
  readonly fingerprint: string
  readonly status: string
  readonly severity: string
  readonly firedAt: string
}

/** What one process of a play said about itself; a part is missing where it was killed before. */
export interface PlayedRank {
  readonly rank: number
  run: string | null
  logged: number
  nanAt: number | null
  /** When the loss had been finite again for long enough. */
  finiteAt: number | null
  endedAt: number | null
  dropped: number
  rejected: number
}

export interface Played {
  readonly play: Play
  readonly ranks: readonly PlayedRank[]
}

export interface Ailing {
  readonly ailment: Ailment
  readonly fingerprint: string
  readonly beganAt: number
  /** When the agent showed the alert; null: it never did. */
  firingAt: number | null
  /** null: it lasts to the end. */
  clearedAt: number | null
}

/** Steps by `run rank`, each with how often it is there. */
export type StepCounts = Map<string, Map<number, number>>

export interface Ledger {
  readonly lives: Life[]
  readonly fullDisks: Span[]
  readonly clockJumps: Span[]
  readonly played: Played[]
  readonly ailing: Ailing[]
  readonly receipts: Receipt[]
  /** By the agent's own answer. */
  readonly acknowledged: StepCounts
  readonly stored: StepCounts
  /** `run rank` lines that say nothing readable. */
  tornLines: number
  /** Alerts that the agent showed as firing: fingerprint to the first time. */
  readonly shown: Map<string, number>
  /** As the agent shows runs at the end. */
  readonly runs: Map<string, { readonly outcome: string | null; readonly steps: number }>
  /** As `gpuwarden report` counts steps, for some runs. */
  readonly reported: Map<string, number>
  /** Still firing at the end, by fingerprint; true: nobody has confirmed it since a restart. */
  readonly firing: Map<string, boolean>
  /** Spool files that nobody took. */
  leftSpools: string[]
}

export function emptyLedger(): Ledger {
  return {
    ...{ lives: [], fullDisks: [], clockJumps: [], played: [], ailing: [], receipts: [] },
    ...{ acknowledged: new Map(), stored: new Map(), shown: new Map(), runs: new Map(), reported: new Map(), firing: new Map() },
    ...{ tornLines: 0, leftSpools: [] },
  }
}

export function countStep(counts: StepCounts, run: string, rank: number, step: number): void {
  const key = `${run} ${rank}`
  const steps = counts.get(key) ?? new Map<number, number>()
  counts.set(key, steps.set(step, (steps.get(step) ?? 0) + 1))
}
