/** How the alerts stand and how their deliveries go; nothing of it where alerts are switched off. */
import type { Reading } from '../core/model.ts'
import { Labels, NO_LABELS } from './labels.ts'
import { type Metric, metric } from './metric.ts'
import { seconds } from './units.ts'

export interface AlertFigures {
  readonly alerts: Readonly<Record<string, number>>
  readonly channels: readonly {
    readonly channel: string
    readonly results: Readonly<Record<string, number>>
    readonly depth: number
    readonly oldestAgeMs: Reading
  }[]
  /** Why alerts are not kept on disk at present. */
  readonly fault: string | null
  readonly refusedFindings: number
  readonly heartbeat: { readonly sent: number; readonly failed: number } | null
}

type AlertMetric = Metric<AlertFigures>

export const ALERT_METRICS: readonly AlertMetric[] = [
  metric(
    'gauge',
    'gpuwarden_alerts',
    '',
    'Alerts by state; those that are silenced or acknowledged are counted as firing, too.',
    ['state'],
    ({ alerts }, emit) => {
      for (const [state, count] of Object.entries(alerts)) emit(Labels.of({ state }), count)
    },
  ),
  metric(
    'counter',
    'gpuwarden_alert_deliveries_total',
    '',
    'Delivery attempts by result: delivered, retried (failed, tried again later), refused (needs a repair, tried again every minute), expired (given up).',
    ['channel', 'result'],
    ({ channels }, emit) => {
      for (const { channel, results } of channels)
        for (const [result, count] of Object.entries(results)) emit(Labels.of({ channel, result }), count)
    },
  ),
  metric('gauge', 'gpuwarden_alert_spool_depth', '', 'Messages waiting for a channel.', ['channel'], ({ channels }, emit) => {
    for (const { channel, depth } of channels) emit(Labels.of({ channel }), depth)
  }),
  metric(
    'gauge',
    'gpuwarden_alert_spool_oldest_age_seconds',
    'seconds',
    'How long the oldest waiting message has waited; absent when none waits.',
    ['channel'],
    ({ channels }, emit) => {
      for (const { channel, oldestAgeMs } of channels) emit(Labels.of({ channel }), oldestAgeMs === null ? null : seconds(oldestAgeMs))
    },
  ),
  metric('gauge', 'gpuwarden_alert_journal_up', '', '1 when alerts are stored on disk, 0 while the disk fails.', [], ({ fault }, emit) =>
    emit(NO_LABELS, fault === null ? 1 : 0),
  ),
  metric(
    'counter',
    'gpuwarden_alert_findings_refused_total',
    '',
    'Findings that became no alert because too many alerts were open.',
    [],
    ({ refusedFindings }, emit) => emit(NO_LABELS, refusedFindings),
  ),
  metric(
    'counter',
    'gpuwarden_heartbeats_total',
    '',
    "Heartbeats to the dead man's switch, by result.",
    ['result'],
    ({ heartbeat }, emit) => {
      if (!heartbeat) return
      emit(Labels.of({ result: 'sent' }), heartbeat.sent)
      emit(Labels.of({ result: 'failed' }), heartbeat.failed)
    },
  ),
]
