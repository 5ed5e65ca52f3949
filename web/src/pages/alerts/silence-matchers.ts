/** What a person may mean when silencing an alert: just it, or its kind. */
import type { AlertView } from '../../answers.ts'

export interface Suggestion {
  readonly words: string
  readonly matchers: string
}

export function suggestions(fingerprint: string | null, alert: AlertView | null): readonly Suggestion[] {
  if (fingerprint === null) return []
  const only: Suggestion = { words: 'Only this alert', matchers: `fingerprint=${fingerprint}` }
  if (!alert) return [only]
  const { detector, subject } = alert.finding
  const more: Suggestion[] = []
  if (subject.gpu !== null) more.push({ words: `All ${detector} alerts on this GPU`, matchers: `detector=${detector}\ngpu=${subject.gpu}` })
  if (subject.user !== null)
    more.push({ words: `All ${detector} alerts for ${subject.user}`, matchers: `detector=${detector}\nuser=${subject.user}` })
  more.push({ words: `All ${detector} alerts on this host`, matchers: `detector=${detector}` })
  return [only, ...more]
}
