/** Makes messages of notices: what belongs together, when it is due, what comes first and what becomes "N more". */
import { createHash } from 'node:crypto'
import type { Alert, AlertMessage, AlertSeries } from '../core/alert-contract.ts'
import { SEVERITY_RANK, worst } from './alert-record.ts'
import type { ChannelQueue } from './channel-queue.ts'
import { isOpen, type Notice, type SpooledMessage } from './notice.ts'

export interface ComposerOptions {
  readonly groupWaitMs: number
  readonly webUiUrl: string | null
  readonly host: string
  /** Whether everything but critical is held back now. */
  readonly isQuiet: (at: number) => boolean
  readonly seriesOf: (alert: Alert) => AlertSeries | null
}

export const MOST_ALERTS = 50
/** Charts for the first few are enough and keep a message small. */
const MOST_SERIES = 5

interface Group {
  readonly keys: string[]
  dueMs: number
}

export class Composer {
  readonly #options: ComposerOptions

  constructor(options: ComposerOptions) {
    this.#options = options
  }

  /** The due group that has waited longest; null when there is none. `mayGo` asks the rate limit. */
  next(
    queue: ChannelQueue,
    now: number,
    nowMs: number,
    mayGo: (isCritical: boolean) => boolean,
    isLast = false,
  ): { readonly spooled: SpooledMessage; readonly taken: readonly string[]; readonly leftOut: readonly string[] } | null {
    if (queue.waiting.size === 0) return null
    const group = this.#dueGroup(queue, now, isLast ? Number.POSITIVE_INFINITY : nowMs)
    if (!group) return null
    const notices = group.keys.flatMap((key) => {
      const notice = queue.waiting.get(key)
      return notice ? [{ key, notice }] : []
    })
    if (!mayGo(notices.some(({ notice }) => notice.severity === 'critical'))) return null
    notices.sort((a, b) => SEVERITY_RANK[b.notice.severity] - SEVERITY_RANK[a.notice.severity])
    const shown = notices.slice(0, MOST_ALERTS)
    // A "resolved" is never one of "N more"; it waits for the next message instead.
    const leftOut = notices.slice(MOST_ALERTS).filter(({ notice }) => notice.alert.status !== 'resolved')
    return {
      spooled: this.#spool(
        queue,
        shown.map(({ notice }) => notice),
        leftOut.length,
        now,
        nowMs,
      ),
      taken: shown.map(({ key }) => key),
      leftOut: leftOut.map(({ key }) => key),
    }
  }

  /** The letter that has waited longest; null: none waits. */
  nextLetter(queue: ChannelQueue, now: number, nowMs: number): SpooledMessage | null {
    const letter = queue.letters.first
    if (letter === null) return null
    const message: Omit<AlertMessage, 'delayedMs'> = {
      ...{ id: letter.id, threadId: letter.id, isFirst: true, kind: 'letter', letter, host: this.#options.host, at: now },
      ...{ severity: 'info', alerts: [], suppressed: 0, owners: [], links: linksFor(this.#options.webUiUrl, null), simulated: false },
    }
    return { message, queuedMs: nowMs, attempts: 0, nextMs: 0, lastReason: null, revision: 0 }
  }

  #dueGroup(queue: ChannelQueue, now: number, nowMs: number): Group | null {
    const isQuiet = this.#options.isQuiet(now)
    const groups = new Map<string, Group>()
    for (const [key, notice] of queue.waiting) {
      if (isQuiet && notice.severity !== 'critical') {
        if (!notice.held) queue.hold(key, notice)
        continue
      }
      const name = groupOf(notice)
      const dueMs = notice.urgent ? notice.queuedMs : notice.queuedMs + this.#options.groupWaitMs
      const group = groups.get(name)
      if (!group) groups.set(name, { keys: [key], dueMs })
      else {
        group.keys.push(key)
        group.dueMs = Math.min(group.dueMs, dueMs)
      }
    }
    let first: Group | null = null
    for (const group of groups.values()) if (group.dueMs <= nowMs && (first === null || group.dueMs < first.dueMs)) first = group
    return first
  }

  #spool(queue: ChannelQueue, notices: readonly Notice[], leftOut: number, now: number, nowMs: number): SpooledMessage {
    const alerts = notices.map(({ alert }, index) => (index < MOST_SERIES ? { ...alert, series: this.#options.seriesOf(alert) } : alert))
    const first = notices[0]
    const fingerprint = first?.alert.fingerprint ?? ''
    const threadId = (first?.held ? null : first?.thread) || digest('thread', fingerprint, String(first?.alert.firedAt), first?.owner ?? '')
    const { webUiUrl } = this.#options
    const message: Omit<AlertMessage, 'delayedMs'> = {
      id: digest(
        queue.name,
        String(now),
        String(nowMs),
        ...alerts.flatMap((alert) => [alert.fingerprint, alert.status, String(alert.firedAt)]),
      ),
      threadId,
      isFirst: !notices.some(({ alert }) => {
        const told = queue.told(alert.fingerprint)
        return told?.sent === true && told.thread === threadId
      }),
      kind: 'alerts',
      host: first?.alert.finding.subject.host ?? this.#options.host,
      at: now,
      severity: worst(notices.map((notice) => notice.severity)),
      alerts,
      suppressed: leftOut + queue.overflow,
      owners: [...new Set(notices.flatMap(({ owner }) => owner ?? []))],
      links: linksFor(webUiUrl, alerts.find(isOpen)?.fingerprint ?? null, leftOut + queue.overflow > 0 ? queue.name : null),
      simulated: notices.some((notice) => notice.simulated),
    }
    return {
      message,
      queuedMs: Math.min(...notices.map((notice) => notice.queuedMs)),
      attempts: 0,
      nextMs: 0,
      lastReason: null,
      revision: 0,
    }
  }
}

/** `untold`: a channel that names only some; its link shows the others. */
export function linksFor(webUiUrl: string | null, fingerprint: string | null, untold: string | null = null): AlertMessage['links'] {
  if (webUiUrl === null) return { dashboard: null, silence: null }
  const base = webUiUrl.replace(/\/+$/, '')
  const silence = fingerprint === null ? null : `${base}/#/silence?fingerprint=${encodeURIComponent(fingerprint)}`
  return { dashboard: `${base}/#/alerts${untold === null ? '' : `?untold=${encodeURIComponent(untold)}`}`, silence }
}

/** One host and one owner per message: people read about their own problems only. A conversation stays in its thread. */
function groupOf(notice: Notice): string {
  const host = notice.alert.finding.subject.host ?? ''
  return `${host}|${notice.owner ?? ''}|${notice.held ? 'held' : (notice.thread ?? 'new')}`
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 24)
}
