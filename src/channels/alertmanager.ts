/** Prometheus Alertmanager, API v2. It groups, silences and routes by labels, so labels never change while a problem lasts. */
import { z } from 'zod'
import type { Alert, AlertMessage } from '../core/alert-contract.ts'
import type { Severity } from '../core/model.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { fullText } from './content-text.ts'
import { judge, postJson, secretText, webAddress } from './http-delivery.ts'
import { oneLine, safeLink } from './plain-text.ts'
import { redactor, secretsOfUrl } from './secrets.ts'

const schema = z.strictObject({
  /** The Alertmanager's base address; /api/v2/alerts is added. */
  url: webAddress,
  token: secretText.optional(),
  user: z.string().min(1).optional(),
  password: secretText.optional(),
  /** A firing alert that is not repeated ends after this many hours; longer than the repeat interval. */
  hold_hours: z.number().positive().max(8760).default(24),
  labels: z.record(z.string().regex(/^[a-zA-Z_]\w*$/, 'expected letters, digits and _'), z.string()).default({}),
})

export const alertmanager = channelKind({
  name: 'alertmanager',
  schema,
  create(name, { url, token, user, password, hold_hours, labels }, { timeoutMs }) {
    const address = new URL(url)
    address.pathname = `${address.pathname.replace(/\/+$/, '')}/api/v2/alerts`
    const basic = user === undefined ? null : Buffer.from(`${user}:${password ?? ''}`).toString('base64')
    const authorization = token !== undefined ? `Bearer ${token.trim()}` : basic === null ? null : `Basic ${basic}`
    const redact = redactor([...secretsOfUrl(url), token, password, basic])
    const headers: Record<string, string> = authorization === null ? {} : { authorization }
    return {
      name,
      async deliver(message, signal) {
        const alerts = alertmanagerAlerts(message, hold_hours * 3_600_000, labels)
        return judge(await postJson(address.href, alerts, { signal, timeoutMs, redact }, headers))
      },
    }
  },
})

const LATE_MS = 300_000
const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']

export function alertmanagerAlerts(message: AlertMessage, holdMs: number, extra: Readonly<Record<string, string>> = {}): object[] {
  const link = safeLink(message.links.dashboard)
  const generatorURL = link === null ? {} : { generatorURL: link }
  const common = { ...extra, host: oneLine(message.host, 200), ...(message.simulated ? { simulated: 'true' } : {}) }
  if (message.kind !== 'alerts') {
    const alertname = message.kind === 'test' ? 'gpuwarden_test' : 'gpuwarden_heartbeat'
    const lastsMs = message.kind === 'test' ? 60_000 : holdMs
    const times = { startsAt: iso(message.at), endsAt: iso(message.at + lastsMs) }
    return [
      { labels: { ...common, alertname, severity: 'info' }, annotations: { summary: contentOf(message).title }, ...times, ...generatorURL },
    ]
  }
  return message.alerts.flatMap((alert) => {
    const labels = { ...common, ...identityOf(alert) }
    const annotations = annotationsOf(alert, message)
    const endsAt = endOf(alert, message.at, holdMs)
    // The severity is a label, hence part of the identity: when it changed, the alert with the old one must end.
    return SEVERITIES.filter((severity) => severity === alert.finding.severity || !message.isFirst).map((severity) => {
      const ends = severity === alert.finding.severity ? endsAt : Math.min(endsAt, message.at)
      return {
        labels: { ...labels, severity },
        annotations,
        startsAt: iso(Math.min(alert.firedAt, ends)),
        endsAt: iso(ends),
        ...generatorURL,
      }
    })
  })
}

/** Alertmanager notifies nobody of an alert that is over when it first sees it, so a late one stays active for a while. */
function endOf({ status, resolvedAt }: Alert, now: number, holdMs: number): number {
  return status === 'late' ? now + LATE_MS : status === 'resolved' ? (resolvedAt ?? now) : now + holdMs
}

/** Owner and GPU index may become known later, so they are annotations. */
function identityOf({ finding }: Alert): Record<string, string> {
  const { subject, detector } = finding
  const labels: [string, string | number | null][] = [
    ['alertname', `gpuwarden_${detector}`],
    ['detector', detector],
    ['gpu_uuid', subject.gpu],
    ['pid', subject.pid],
    ['run', subject.run],
    ['rank', subject.rank],
    ['fingerprint', finding.fingerprint],
  ]
  return Object.fromEntries(labels.flatMap(([name, value]) => (value === null ? [] : [[name, oneLine(String(value), 300)]])))
}

function annotationsOf(alert: Alert, message: AlertMessage): Record<string, string> {
  const content = contentOf({ ...message, alerts: [alert] })
  const [said] = content.alerts
  const facts = said?.where.map(({ label, value }) => [label.toLowerCase().replaceAll(' ', '_'), value]) ?? []
  return { ...Object.fromEntries(facts), summary: said?.headline ?? content.title, description: fullText(content) }
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
