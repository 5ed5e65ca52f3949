/** Finds out what changed among the alerts, for those who follow. Nobody follows: nothing is compared, nothing is kept. */
import type { AlertNews, AlertsEvent, AlertView } from '../core/alert-contract.ts'
import type { AlertRecord } from './alert-record.ts'
import type { Silence } from './silences.ts'

export interface ChangeWatchOptions {
  readonly records: () => Iterable<AlertRecord>
  readonly recordOf: (fingerprint: string) => AlertRecord | undefined
  readonly viewOf: (record: AlertRecord) => AlertView
  readonly silences: () => readonly Silence[]
  readonly now: () => number
  /** Called for an error that nobody waits for. */
  readonly onFault: (error: unknown) => void
  /** Changes within this time are sent together. */
  readonly gatherMs?: number
}

/** The most alerts in one event; an alert is about 1.5 KB of JSON. */
export const MOST_IN_EVENT = 100
const GATHER_MS = 250

export class ChangeWatch implements AlertNews {
  readonly #options: ChangeWatchOptions
  readonly #listeners = new Set<(event: AlertsEvent) => void>()
  /** How each alert looked when it was last sent. */
  readonly #known = new Map<string, string>()
  #silences = ''
  readonly #touched = new Set<string>()
  #isAllTouched = false
  #timer: NodeJS.Timeout | null = null

  constructor(options: ChangeWatchOptions) {
    this.#options = options
  }

  follow(listener: (event: AlertsEvent) => void): () => void {
    if (this.#listeners.size === 0) {
      for (const record of this.#options.records()) this.#known.set(record.fingerprint, looksOf(this.#options.viewOf(record)))
      this.#silences = this.#silenceIds()
    }
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  touch(fingerprint: string): void {
    if (this.#listeners.size === 0) return
    this.#touched.add(fingerprint)
    this.#tellSoon()
  }

  /** Any of them may have changed: a silence was set, a window ended, a message was delivered. */
  touchAll(): void {
    if (this.#listeners.size === 0) return
    this.#isAllTouched = true
    this.#tellSoon()
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    this.#listeners.clear()
    this.#known.clear()
    this.#touched.clear()
    this.#isAllTouched = false
  }

  #tellSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      try {
        this.#tell()
      } catch (error) {
        this.#options.onFault(error)
      }
    }, this.#options.gatherMs ?? GATHER_MS).unref()
  }

  #tell(): void {
    const { records, recordOf, now } = this.#options
    const alerts: AlertView[] = []
    const gone: string[] = []
    let hasMore = false
    if (this.#isAllTouched) {
      for (const record of records()) hasMore = this.#compare(record, alerts) || hasMore
      for (const fingerprint of this.#known.keys()) if (!recordOf(fingerprint)) gone.push(fingerprint)
    } else {
      for (const fingerprint of this.#touched) {
        const record = recordOf(fingerprint)
        if (record) hasMore = this.#compare(record, alerts) || hasMore
        else if (this.#known.has(fingerprint)) gone.push(fingerprint)
      }
    }
    for (const fingerprint of gone) this.#known.delete(fingerprint)
    this.#touched.clear()
    this.#isAllTouched = false
    const silences = this.#silenceIds()
    const silencesChanged = silences !== this.#silences
    this.#silences = silences
    if (alerts.length === 0 && gone.length === 0 && !silencesChanged) return
    const event: AlertsEvent = {
      ...{ type: 'alerts', at: now(), alerts, gone: gone.slice(0, MOST_IN_EVENT) },
      hasMore: hasMore || gone.length > MOST_IN_EVENT,
      silencesChanged,
    }
    for (const listener of this.#listeners) listener(event)
  }

  /** True: it changed, and the event is full. */
  #compare(record: AlertRecord, changed: AlertView[]): boolean {
    const view = this.#options.viewOf(record)
    const looks = looksOf(view)
    if (this.#known.get(record.fingerprint) === looks) return false
    this.#known.set(record.fingerprint, looks)
    if (changed.length >= MOST_IN_EVENT) return true
    changed.push(view)
    return false
  }

  #silenceIds(): string {
    return this.#options
      .silences()
      .map(({ id }) => id)
      .join()
  }
}

/** What a person would see change. Numbers change with every reading, so only those in the message count. */
function looksOf({ finding, acknowledged, ...view }: AlertView): string {
  return [
    ...[view.state, view.mutedBy, view.silence, view.flapping, view.unconfirmed, view.gpuLabel, view.told, view.waiting],
    ...[acknowledged?.until, acknowledged?.by, view.firedAt, view.resolvedAt, finding.severity, finding.message],
  ].join('|')
}
