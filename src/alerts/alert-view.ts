/** How the alerts stand, for people and for /metrics. */
import type { AlertView } from '../core/alert-contract.ts'
import type { AlertRecord } from './alert-record.ts'
import type { AlertsHealth } from './alerts-api.ts'
import type { Dispatch } from './dispatch.ts'
import type { AlertEngine } from './engine.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { Journal } from './journal.ts'
import type { Outbox } from './outbox.ts'

export interface Parts {
  readonly engine: AlertEngine
  readonly dispatch: Dispatch
  readonly outbox: Outbox
  readonly journal: Journal
  readonly heartbeat: Heartbeat | null
  readonly now: () => number
}

export function viewOf(record: AlertRecord, { engine, dispatch, outbox, now }: Parts): AlertView {
  const { fingerprint, finding, firedAt, simulated, acknowledged } = record
  const state = stateOf(record)
  const resolvedAt = state === 'resolved' ? (record.resolvedAt ?? record.cleared?.at ?? null) : null
  const muted = state === 'resolved' ? null : dispatch.muted(record)
  const queues = [...outbox.queues.values()]
  return {
    ...{ fingerprint, state, firedAt, resolvedAt, simulated },
    // What is over counts no more.
    finding: state === 'resolved' ? { ...finding, state } : finding,
    flapping: engine.isFlapping(record),
    acknowledged: acknowledged !== null && acknowledged.until > now() ? acknowledged : null,
    mutedBy: muted?.by ?? null,
    silence: muted?.by === 'silence' ? muted.silence.id : null,
    told: queues.filter((queue) => queue.told(fingerprint)?.sent).map((queue) => queue.name),
    waiting: queues.filter((queue) => queue.has(fingerprint)).map((queue) => queue.name),
    gpuLabel: dispatch.labelOf(finding),
    unconfirmed: record.unconfirmed,
  }
}

/** Nothing that is over is open: whether it comes back is waited for before people are notified, not before they see it. */
function stateOf({ phase, clearMs }: AlertRecord): AlertRecord['phase'] {
  return phase === 'firing' && clearMs !== null ? 'resolved' : phase
}

export function healthOf({ engine, dispatch, outbox, journal, heartbeat }: Parts): AlertsHealth {
  const alerts = { pending: 0, firing: 0, resolved: 0, silenced: 0, acknowledged: 0 }
  for (const record of engine.records()) {
    const state = stateOf(record)
    alerts[state]++
    if (state !== 'firing') continue
    const muted = dispatch.muted(record)
    if (muted?.by === 'silence') alerts.silenced++
    else if (muted?.by === 'acknowledged') alerts.acknowledged++
  }
  const channels = outbox.health()
  const ages = channels.flatMap((channel) => channel.oldestAgeMs ?? [])
  const { fault } = journal
  return {
    state: fault === null && !outbox.isRefused ? 'ok' : 'degraded',
    alerts,
    channels,
    spoolDepth: channels.reduce((sum, channel) => sum + channel.depth, 0),
    spoolOldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
    fault,
    corruptFiles: journal.corrupt,
    refusedFindings: engine.refused,
    heartbeat: heartbeat?.health() ?? null,
  }
}
