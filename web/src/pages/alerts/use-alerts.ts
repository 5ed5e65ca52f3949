/** The alerts, kept up to date by the stream. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { AlertsEvent, AlertView } from '../../../../src/core/kinds.ts'
import { type AlertsAnswer, alertsNow, laterThan } from '../../live/alert-list.ts'
import { onEvent } from '../../live/store.ts'
import { useAnswer } from '../../poll.ts'

/** The stream tells of every change: this is for what nobody thought of. */
export const SAFETY_MS = 60_000
/** More changed at once than the stream tells: the whole list is asked for, this often at most. */
const WHOLE_LIST_MS = 2000

export interface KnownAlerts {
  /** null: not known yet. */
  readonly alerts: readonly AlertView[] | null
  readonly fault: string | null
  readonly code: string | null
  readonly again: () => void
}

export function useAlerts(): KnownAlerts {
  const { answer, fault, code, again } = useAnswer<AlertsAnswer>('/api/v1/alerts', {}, SAFETY_MS)
  const [news, setNews] = useState<readonly AlertsEvent[]>([])
  const answered = useRef(0)
  answered.current = answer?.at ?? 0
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null
    const stop = onAlerts((event) => {
      setNews((last) => [...laterThan(answered.current, last), event])
      if (!event.hasMore) return
      timer ??= setTimeout(() => {
        timer = null
        again()
      }, WHOLE_LIST_MS)
    })
    return () => {
      stop()
      if (timer !== null) clearTimeout(timer)
    }
  }, [])
  const alerts = useMemo(() => (answer === null ? null : alertsNow(answer, news)), [answer, news])
  return { alerts, fault, code, again }
}

/** Called with what the stream tells of alerts, for as long as the page is shown. */
export function useAlertsEvent(listener: (event: AlertsEvent) => void): void {
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => onAlerts((event) => latest.current(event)), [])
}

function onAlerts(listener: (event: AlertsEvent) => void): () => void {
  return onEvent((event) => {
    if (event.type === 'alerts') listener(event)
  })
}
