/** Pushover: pushes to phones. */
import { z } from 'zod'
import type { AlertMessage } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { shortText } from './content-text.ts'
import { judge, postJson, secretText, webAddress } from './http-delivery.ts'
import { cut } from './plain-text.ts'
import { redactor } from './secrets.ts'

const schema = z.strictObject({
  /** Of the application. */
  token: secretText,
  /** Of the user or group. */
  user_key: secretText,
  device: z.string().min(1).optional(),
  /** Critical alerts ring until somebody acknowledges them. */
  emergency: z.boolean().default(false),
  url: webAddress.default('https://api.pushover.net/1/messages.json'),
})

export const pushover = channelKind({
  name: 'pushover',
  schema,
  create(name, { token, user_key, device, emergency, url }, { timeoutMs }) {
    const redact = redactor([token, user_key])
    return {
      name,
      async deliver(message, signal) {
        const body = { token, user: user_key, ...(device === undefined ? {} : { device }), ...pushoverBody(message, emergency) }
        return judge(await postJson(url, body, { signal, timeoutMs, redact }))
      },
    }
  },
})

const PRIORITIES = { critical: 1, warning: 0, info: -1, resolved: -1 } as const

export function pushoverBody(message: AlertMessage, emergency: boolean) {
  const content = contentOf(message)
  const rings = emergency && content.tone === 'critical'
  const [link] = content.links
  const text = shortText(content, 1000)
  return {
    title: cut(content.title, 240),
    message: text === '' ? content.title : text,
    timestamp: Math.floor(message.at / 1000),
    priority: rings ? 2 : PRIORITIES[content.tone],
    ...(rings ? { retry: 60, expire: 3600 } : {}),
    ...(link === undefined || link.value.length > 512 ? {} : { url: link.value, url_title: link.label }),
  }
}
