/** PagerDuty, Events API v2: one event per alert, under a key that firing, repeat and resolved share. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Alert, AlertMessage, Delivery } from '../core/alert-contract.ts'
import { messageAt } from '../core/forecast-words.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { judge, postJson, secretText, webAddress } from './http-delivery.ts'
import { isOver, payloadOf } from './payload.ts'
import { cut, oneLine } from './plain-text.ts'
import { redactor } from './secrets.ts'

const schema = z.strictObject({
  /** Integration key of the service. */
  routing_key: secretText,
  url: webAddress.default('https://events.pagerduty.com/v2/enqueue'),
})

export const pagerduty = channelKind({
  name: 'pagerduty',
  schema,
  create(name, { routing_key, url }, { timeoutMs }) {
    const redact = redactor([routing_key])
    return {
      name,
      async deliver(message, signal): Promise<Delivery> {
        let last: Delivery = { ok: true, answer: 'nothing was sent: PagerDuty takes no heartbeats' }
        // A retry repeats events that were accepted: the key makes that harmless.
        for (const event of pagerdutyEvents(message)) {
          last = judge(await postJson(url, { routing_key: routing_key.trim(), ...event }, { signal, timeoutMs, redact }))
          if (!last.ok) return last
        }
        return last
      },
    }
  },
})

export function pagerdutyEvents(message: AlertMessage): object[] {
  if (message.kind === 'heartbeat') return []
  const content = contentOf(message)
  const common = {
    client: 'gpuwarden',
    links: content.links.map(({ label, value }) => ({ href: value, text: label })),
  }
  const payload = payloadOf(message)
  if (message.kind === 'test') {
    const key = dedupKey(`test ${message.id}`)
    const test = { summary: content.title, source: oneLine(message.host, 200) || 'unknown', severity: 'info' }
    return [
      { ...common, event_action: 'trigger', dedup_key: key, payload: test },
      { event_action: 'resolve', dedup_key: key },
    ]
  }
  return message.alerts.flatMap((alert, index) => {
    const key = dedupKey(`${message.host} ${alert.fingerprint}`)
    const resolve = { event_action: 'resolve', dedup_key: key }
    if (alert.status === 'resolved') return [resolve]
    const trigger = { ...common, event_action: 'trigger', dedup_key: key, payload: eventOf(alert, message, payload.alerts[index]) }
    return isOver(alert) ? [trigger, resolve] : [trigger]
  })
}

function eventOf(alert: Alert, message: AlertMessage, details: object | undefined) {
  const { finding } = alert
  const simulated = message.simulated ? 'SIMULATED ' : ''
  const place = alert.gpuLabel === null ? '' : ` GPU ${oneLine(alert.gpuLabel, 20)}`
  return {
    summary: cut(
      `${simulated}${oneLine(message.host, 80)}${place}: ${oneLine(messageAt(finding, message.at + message.delayedMs), 600)}`,
      1000,
    ),
    source: oneLine(message.host, 200) || 'unknown',
    // What is already over is recorded without waking anybody.
    severity: isOver(alert) ? 'info' : finding.severity,
    timestamp: new Date(finding.since).toISOString(),
    component: alert.gpuLabel === null ? 'gpuwarden' : `GPU ${oneLine(alert.gpuLabel, 20)}`,
    group: oneLine(message.host, 200),
    class: oneLine(finding.detector, 100),
    custom_details: { ...details, delayed_seconds: Math.round(message.delayedMs / 1000), more_held_back: message.suppressed },
  }
}

/** At most 255 characters, else a hash. */
function dedupKey(text: string): string {
  const key = `gpuwarden ${oneLine(text, 2000)}`
  return key.length <= 255 ? key : `gpuwarden ${createHash('sha256').update(text).digest('hex')}`
}
