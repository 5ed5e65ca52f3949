/** A journal that could not be read at the start is found later: what it holds joins what happened meanwhile. */
import type { PastAlert } from '../core/alert-contract.ts'
import type { AlertRecord } from './alert-record.ts'
import { keptTimes } from './commits.ts'
import type { AlertEngine } from './engine.ts'
import type { Outbox } from './outbox.ts'
import type { PastAlerts } from './past-alerts.ts'
import type { Silence, Silences } from './silences.ts'

export interface Joined {
  readonly engine: AlertEngine
  readonly outbox: Outbox
  readonly silences: Silences
  readonly past: PastAlerts
  /** Observed time of delivery. */
  readonly deliveryMs: number
  readonly keep: (record: AlertRecord) => void
}

/** Observed time began anew at this start, so the times in it are moved: how long ago something was stays the same. */
export function joinJournal(entries: ReadonlyMap<string, unknown>, { engine, outbox, silences, past, deliveryMs, keep }: Joined): void {
  const times = keptTimes(entries)
  const engineShift = engine.nowMs - (times?.engine.ms ?? 0)
  const deliveryShift = deliveryMs - (times?.delivery.ms ?? 0)
  const pastAlerts: PastAlert[] = []
  for (const [key, value] of entries) {
    const [part] = key.split('/', 1)
    if (part === 'alert') {
      const record = engine.join(moved(value, engineShift) as AlertRecord)
      if (record) keep(record)
    } else if (part === 'channel') outbox.join(key, moved(value, deliveryShift))
    else if (part === 'silence') silences.join(value as Silence)
    else if (part === 'past') pastAlerts.push(value as PastAlert)
  }
  past.join(pastAlerts)
}

/** Fields in observed time are named `ms`, or end in `Ms`. */
function moved(value: unknown, byMs: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  const move = (one: unknown): unknown => (typeof one === 'number' ? one + byMs : Array.isArray(one) ? one.map(move) : one)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, /(^m|M)s$/.test(name) ? move(one) : one]))
}
