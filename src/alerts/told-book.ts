/** What one channel last reported of each problem. */
import type { Alert } from '../core/alert-contract.ts'
import { explanationOf } from './alert-record.ts'
import type { Journal } from './journal.ts'
import type { Told } from './notice.ts'

export class ToldBook {
  readonly #journal: Journal
  readonly #prefix: string
  readonly #told = new Map<string, Told>()

  constructor(journal: Journal, prefix: string) {
    this.#journal = journal
    this.#prefix = prefix
    for (const [key, value] of journal.entries(prefix)) this.#told.set(key.slice(prefix.length), value as Told)
  }

  get(fingerprint: string): Told | undefined {
    return this.#told.get(fingerprint)
  }

  isSent(fingerprint: string): boolean {
    return this.#told.get(fingerprint)?.sent ?? false
  }

  /** What was sent once stays sent. */
  tell({ fingerprint, finding, firedAt }: Alert, threadId: string, ms: number, sent: boolean): void {
    const thread = this.#told.get(fingerprint)?.thread || threadId
    const isExplained = explanationOf(finding) !== null
    this.put(fingerprint, { sent: sent || this.isSent(fingerprint), ms, severity: finding.severity, thread, firedAt, isExplained })
  }

  put(fingerprint: string, told: Told): void {
    this.#told.set(fingerprint, told)
    this.#journal.set(this.#prefix + fingerprint, told)
  }

  forget(fingerprint: string): void {
    if (this.#told.delete(fingerprint)) this.#journal.delete(this.#prefix + fingerprint)
  }
}
