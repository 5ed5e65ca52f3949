/** The message as JSON, for programs: what webhooks post and commands read. Documented in docs/channels.md; `version` changes when it breaks. */
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import { isoTime } from '../core/format.ts'
import { contentOf } from './content.ts'
import { fullText } from './content-text.ts'
import { harmless, safeLink } from './plain-text.ts'

export const PAYLOAD_NAMES = [
  'version',
  'id',
  'threadId',
  'isFirst',
  'kind',
  'host',
  'at',
  'severity',
  'status',
  'title',
  'text',
  'simulated',
  'suppressed',
  'delayedSeconds',
  'links',
  'alerts',
] as const

export function payloadOf(message: AlertMessage) {
  const content = contentOf(message)
  const fields = {
    version: 1,
    id: message.id,
    threadId: message.threadId,
    isFirst: message.isFirst,
    kind: message.kind,
    host: message.host,
    at: isoTime(message.at),
    severity: message.severity,
    /** Resolved only when every alert is. */
    status: message.alerts.length > 0 && message.alerts.every(isOver) ? 'resolved' : 'firing',
    title: content.title,
    /** At its place in the order; it has lines, all of them harmless. */
    text: '',
    simulated: message.simulated,
    suppressed: message.suppressed,
    delayedSeconds: Math.round(message.delayedMs / 1000),
    links: { dashboard: safeLink(message.links.dashboard), silence: safeLink(message.links.silence) },
    alerts: message.alerts.map(alertPayload),
  }
  return { ...harmless(fields), text: fullText(content) }
}

export function isOver(alert: Alert): boolean {
  return alert.status === 'resolved' || alert.status === 'late'
}

/** Without the command line: people put passwords there. */
function alertPayload(alert: Alert) {
  const { finding, process } = alert
  const { subject } = finding
  const info = process?.info ?? null
  return {
    fingerprint: alert.fingerprint,
    status: alert.status,
    severity: finding.severity,
    detector: finding.detector,
    message: finding.message,
    since: isoTime(finding.since),
    firedAt: isoTime(alert.firedAt),
    resolvedAt: isoTime(alert.resolvedAt),
    gpu: subject.gpu === null ? null : { id: subject.gpu, index: subject.gpuIndex, label: alert.gpuLabel, name: alert.gpuName },
    process:
      subject.pid === null
        ? null
        : {
            pid: subject.pid,
            name: info?.name ?? null,
            executable: info?.executable ?? null,
            container: info?.container ?? null,
            pod: info?.pod ?? null,
            slurmJob: info?.slurmJob ?? null,
          },
    user: subject.user ?? info?.user ?? null,
    run: subject.run,
    rank: subject.rank,
    confidence: finding.confidence,
    riskLevel: finding.riskLevel,
    predictedAt: isoTime(finding.predictedAt),
    predictedEarliestAt: isoTime(finding.predictedEarliestAt),
    predictedLatestAt: isoTime(finding.predictedLatestAt),
    evidence: finding.evidence,
    advice: finding.advice,
  }
}
