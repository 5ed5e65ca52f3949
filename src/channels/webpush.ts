/** Web push: notifications of the web UI, also while no page is open. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { AlertMessage, Channel, Delivery } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { shortText } from './content-text.ts'
import { type HttpContext, judge, post } from './http-delivery.ts'
import { PartialDeliveries } from './partial-deliveries.ts'
import { cutBytes, oneLine } from './plain-text.ts'
import { leadsInside } from './public-host.ts'
import { type PushSubscription, PushSubscriptions } from './push-subscriptions.ts'
import { redactor, secretsOfUrl } from './secrets.ts'
import { encryptPush, MOST_PAYLOAD_BYTES, type PushKeys, vapidAuthorization } from './webpush-encryption.ts'

const NOBODY = 'no browser has subscribed'

const schema = z.strictObject({
  /** Contact for the operator of a push service: Apple's refuses made-up ones. */
  contact: z
    .string()
    .regex(/^(mailto:[^@\s]+@[^@\s]+|https:\/\/\S+)$/, 'expected mailto:ADDRESS or an https:// address')
    .default('mailto:gpuwarden@example.org'),
  /** How long a push service keeps a message for a device that is off. */
  keep_hours: z.number().min(0).max(672).default(24),
})

export const webpush = channelKind({
  name: 'webpush',
  schema,
  create: (name, options, { stateDir, timeoutMs }) => openWebPush(name, options, new PushSubscriptions(stateDir), timeoutMs),
})

/** With subscriptions that the server adds to and removes from. */
export function openWebPush(
  name: string,
  { contact, keep_hours }: z.infer<typeof schema>,
  subscriptions: PushSubscriptions,
  timeoutMs?: number,
): Channel & { idle(): string | null } {
  const partial = new PartialDeliveries()
  return {
    name,
    /** Without a subscribed browser there is nobody to notify: neither a delivery nor an error. */
    idle() {
      try {
        return subscriptions.list().length === 0 ? NOBODY : null
      } catch (error) {
        return (error as Error).message
      }
    },
    async deliver(message, signal): Promise<Delivery> {
      const waiting = subscriptions.list().filter(({ endpoint }) => !partial.has(message.id, endpoint))
      if (subscriptions.list().length === 0) return { ok: false, retry: false, hopeless: true, reason: NOBODY }
      const payload = Buffer.from(pushPayload(message))
      const keys = await subscriptions.keys()
      const results = await Promise.all(
        waiting.map(async (subscription) => {
          const redact = redactor([...secretsOfUrl(subscription.endpoint), subscription.keys.auth])
          const headers = headersOf(message, vapid(subscription, contact, keys), keep_hours)
          const context = { signal, timeoutMs, redact }
          const delivery =
            (subscriptions.allowsInside ? null : await barred(subscription)) ?? (await push(subscription, payload, headers, context))
          if (delivery === 'gone') await forget(subscription, subscriptions)
          else if (delivery.ok) partial.add(message.id, [subscription.endpoint])
          return delivery
        }),
      )
      return summary(message.id, results, partial)
    },
  }
}

/** A name that was on the internet at subscription may resolve elsewhere now. */
async function barred({ endpoint }: PushSubscription): Promise<Delivery | null> {
  const { hostname } = new URL(endpoint)
  try {
    if (!(await leadsInside(hostname))) return null
    return { ok: false, retry: false, reason: `${hostname} is now in a private network: nothing was sent there` }
  } catch (error) {
    return { ok: false, retry: true, reason: `${hostname}: ${(error as Error).message}` }
  }
}

/** A failed write is not a failed delivery: the push service will report it again. */
async function forget({ endpoint }: PushSubscription, subscriptions: PushSubscriptions): Promise<void> {
  try {
    await subscriptions.remove(endpoint)
  } catch (error) {
    subscriptions.problems.push((error as Error).message)
  }
}

function vapid(subscription: PushSubscription, contact: string, keys: PushKeys): string {
  return vapidAuthorization(subscription.endpoint, contact, keys, Math.floor(Date.now() / 1000))
}

async function push(
  { endpoint, keys }: PushSubscription,
  payload: Buffer,
  headers: Readonly<Record<string, string>>,
  context: HttpContext,
): Promise<Delivery | 'gone'> {
  const answer = await post({ url: endpoint, headers, body: encryptPush(payload, keys) }, context)
  return answer.status === 404 || answer.status === 410 ? 'gone' : judge(answer)
}

function headersOf(message: AlertMessage, authorization: string, keepHours: number): Record<string, string> {
  return {
    authorization,
    'content-type': 'application/octet-stream',
    'content-encoding': 'aes128gcm',
    ttl: String(Math.round(keepHours * 3600)),
    urgency: message.severity === 'critical' ? 'high' : message.severity === 'warning' ? 'normal' : 'low',
    // A newer message about the same problem replaces one that still waits.
    topic: createHash('sha256').update(message.threadId).digest('base64url').slice(0, 32),
  }
}

/** One temporary failure is enough for a retry; those that got it are left out then. */
function summary(id: string, results: readonly (Delivery | 'gone')[], partial: PartialDeliveries): Delivery {
  const deliveries = results.filter((result) => result !== 'gone')
  const again = deliveries.find((result) => !result.ok && result.retry)
  if (again) return again
  partial.forget(id)
  const taken = deliveries.filter((result) => result.ok)
  const refused = deliveries.find((result) => !result.ok)
  if (taken.length === 0 && refused) return refused
  const gone = results.length - deliveries.length
  if (taken.length === 0 && gone > 0)
    return { ok: false, retry: false, hopeless: true, reason: `no browser is subscribed any more: ${gone} unsubscribed` }
  const rest = [gone > 0 ? `${gone} no longer subscribed` : '', refused && !refused.ok ? `one refused: ${refused.reason}` : '']
  return { ok: true, answer: [`sent to ${taken.length} browsers`, ...rest.filter((text) => text !== '')].join('; ') }
}

/** What the service worker of the web UI shows. JSON escapes make it longer than its text, so it is cut until it fits. */
export function pushPayload(message: AlertMessage): string {
  const content = contentOf(message)
  const link = content.links.find(({ label }) => label === 'Web UI')?.value ?? null
  for (let most = 2000; ; most = Math.floor(most / 2)) {
    const payload = JSON.stringify({
      title: cutBytes(content.title, 300),
      body: cutBytes(shortText(content, 1200), most),
      tone: content.tone,
      tag: cutBytes(oneLine(message.threadId), 200),
      url: link !== null && link.length <= 500 ? link : null,
    })
    if (Buffer.byteLength(payload) <= MOST_PAYLOAD_BYTES) return payload
  }
}
