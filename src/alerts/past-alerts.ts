/** The latest alerts that are over, for `alerts history`: bounded, and kept over a restart. */
import type { PastAlert } from '../core/alert-contract.ts'
import { lastWords } from '../core/forecast-words.ts'
import type { AlertRecord } from './alert-record.ts'
import type { Journal } from './journal.ts'

export interface PastRange {
  /** Epoch milliseconds: those that were firing at or after this time. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  /** How many of the newest. */
  readonly limit?: number | undefined
}

const PREFIX = 'past/'
export const KEPT = 300

export class PastAlerts {
  readonly #journal: Journal
  #kept: { readonly key: string; readonly past: PastAlert }[]
  #count: number

  constructor(journal: Journal) {
    this.#journal = journal
    this.#kept = journal.entries(PREFIX).map(([key, value]) => ({ key, past: withSince(value as PastAlert) }))
    this.#count = Math.max(0, ...this.#kept.map(({ key }) => Number(key.slice(PREFIX.length)) || 0))
  }

  add(record: AlertRecord): void {
    const { fingerprint, finding, firedAt, resolvedAt, simulated, acknowledged } = record
    const { detector, subject, severity } = finding
    const past: PastAlert = {
      ...{ fingerprint, detector, subject, severity, message: lastWords(finding, record.cleared), since: finding.since, simulated },
      firedAt: firedAt ?? finding.at,
      resolvedAt: resolvedAt ?? finding.at,
      acknowledgedBy: acknowledged?.by ?? null,
    }
    this.#push(past)
  }

  /** Earlier ones, of a journal that was found late. */
  join(earlier: readonly PastAlert[]): void {
    const later = this.#kept
    this.#kept = []
    for (const { key } of later) this.#journal.delete(key)
    for (const past of [...earlier, ...later.map(({ past }) => past)]) this.#push(withSince(past))
  }

  #push(past: PastAlert): void {
    const key = `${PREFIX}${++this.#count}`
    this.#kept.push({ key, past })
    this.#journal.set(key, past)
    const old = this.#kept.length > KEPT ? this.#kept.shift() : undefined
    if (old) this.#journal.delete(old.key)
  }

  forgetSimulated(): void {
    for (const { key, past } of this.#kept) if (past.simulated) this.#journal.delete(key)
    this.#kept = this.#kept.filter(({ past }) => !past.simulated)
  }

  list({ from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY, limit = KEPT }: PastRange = {}): readonly PastAlert[] {
    return this.#kept
      .map(({ past }) => past)
      .filter(({ firedAt, resolvedAt }) => resolvedAt >= from && firedAt <= to)
      .reverse()
      .slice(0, limit)
  }
}

/** A journal of an earlier version does not say when the problem began. */
function withSince(past: PastAlert): PastAlert {
  return { ...past, since: past.since ?? past.firedAt }
}
