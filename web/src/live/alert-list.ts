/** The alerts as they are now: what the agent answered, and what the stream told since. */
import type { AlertsEvent, AlertView } from '../../../src/core/kinds.ts'

export interface AlertsAnswer {
  readonly at: number
  readonly alerts: readonly AlertView[]
}

/** An event from before the answer is in it already: a slow answer must not be taken for the newest, nor an old event for news. */
export function alertsNow({ at, alerts }: AlertsAnswer, news: readonly AlertsEvent[]): readonly AlertView[] {
  const current = new Map(alerts.map((alert) => [alert.fingerprint, alert]))
  for (const event of news) {
    if (event.at < at) continue
    for (const alert of event.alerts) current.set(alert.fingerprint, alert)
    for (const fingerprint of event.gone) current.delete(fingerprint)
  }
  return [...current.values()]
}

/** Without what an answer of this time holds. */
export function laterThan(at: number, news: readonly AlertsEvent[]): readonly AlertsEvent[] {
  return news.filter((event) => event.at >= at)
}
