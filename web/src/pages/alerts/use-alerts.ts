/** The alerts, kept up to date by the stream. */
import { useEffect, useRef } from 'preact/hooks'
import type { AlertsEvent, AlertView } from '../../../../src/core/alert-contract.ts'
import type { AlertsAnswer } from '../../../../src/core/known/alerts.ts'
import { alerts, onEvent, takeAlerts } from '../../live/store.ts'
import { useAnswer } from '../../poll.ts'

/** The stream carries every change: this is a safety net. */
export const SAFETY_MS = 60_000

export interface ShownAlerts {
  readonly alerts: readonly AlertView[] | null
  readonly fault: string | null
  readonly code: string | null
  readonly again: () => void
}

export function useAlerts(): ShownAlerts {
  const { answer, fault, code, again } = useAnswer<AlertsAnswer>('/api/v1/alerts', {}, SAFETY_MS)
  useEffect(() => {
    if (answer) takeAlerts(answer)
  }, [answer])
  return { alerts: alerts.value, fault, code, again }
}

/** Called with the alerts of the stream, for as long as the page is shown. */
export function useAlertsEvent(listener: (event: AlertsEvent) => void): void {
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => onEvent((event) => event.type === 'alerts' && latest.current(event)), [])
}
