/** What follows from a change of an alert: it is kept, its channels are brought in line with it, and those who follow see it. */
import type { ChangeWatch } from './alert-news.ts'
import type { AlertRecord } from './alert-record.ts'
import type { Commits } from './commits.ts'
import type { Dispatch } from './dispatch.ts'
import type { Transition } from './engine.ts'
import type { Journal } from './journal.ts'
import type { PastAlerts } from './past-alerts.ts'

const ALERT = 'alert/'

export interface AlertChangesOptions {
  readonly journal: Journal
  readonly commits: Commits
  readonly dispatch: Dispatch
  readonly past: PastAlerts
  readonly news: ChangeWatch
}

export class AlertChanges {
  readonly #options: AlertChangesOptions

  constructor(options: AlertChangesOptions) {
    this.#options = options
  }

  /** True: one of them is critical and must be sent at once. */
  follow(transitions: readonly Transition[]): boolean {
    if (transitions.length === 0) return false
    const { journal, commits, dispatch, past, news } = this.#options
    let isUrgent = false
    for (const { type, record } of transitions) {
      news.touch(record.fingerprint)
      if (type === 'forgotten') {
        journal.delete(ALERT + record.fingerprint)
        dispatch.forget(record)
        continue
      }
      if (type === 'resolved') past.add(record)
      this.keep(record)
      dispatch.reconcile(record)
      isUrgent ||= record.finding.severity === 'critical' && type !== 'pending'
    }
    commits.soon()
    return isUrgent
  }

  /** For a change that is no transition. */
  note(record: AlertRecord): void {
    this.keep(record)
    this.#options.news.touch(record.fingerprint)
    this.#options.commits.soon()
  }

  keep(record: AlertRecord): void {
    this.#options.journal.set(ALERT + record.fingerprint, record)
  }
}

export function keptAlerts(journal: Journal): readonly AlertRecord[] {
  return journal.entries(ALERT).map(([, value]) => value as AlertRecord)
}
