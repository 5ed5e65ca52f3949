/** ntfy: pushes to phones, by ntfy.sh or another server. */
import { z } from 'zod'
import type { AlertMessage } from '../core/alert-contract.ts'
import { channelKind } from './channel-kind.ts'
import { contentOf } from './content.ts'
import { shortText } from './content-text.ts'
import { judge, postJson, secretText, webAddress } from './http-delivery.ts'
import { cutBytes } from './plain-text.ts'
import { isReference, redactor } from './secrets.ts'

const schema = z.strictObject({
  url: webAddress.default('https://ntfy.sh'),
  /** On a public server the secret name of the topic keeps others out. */
  topic: z.string().refine((text) => isReference(text) || /^[-\w]{1,64}$/.test(text), 'expected 1 to 64 letters, digits, - or _'),
  token: secretText.optional(),
  user: z.string().min(1).optional(),
  password: secretText.optional(),
})

export const ntfy = channelKind({
  name: 'ntfy',
  schema,
  create(name, { url, topic, token, user, password }, { timeoutMs }) {
    const basic = user === undefined ? null : Buffer.from(`${user}:${password ?? ''}`).toString('base64')
    const authorization = token !== undefined ? `Bearer ${token.trim()}` : basic === null ? null : `Basic ${basic}`
    const redact = redactor([topic, token, password, basic])
    const headers: Record<string, string> = authorization === null ? {} : { authorization }
    return {
      name,
      deliver: async (message, signal) =>
        judge(await postJson(url, { topic, ...ntfyBody(message) }, { signal, timeoutMs, redact }, headers)),
    }
  },
})

const TONES = {
  critical: { priority: 5, tags: ['rotating_light'] },
  warning: { priority: 4, tags: ['warning'] },
  info: { priority: 2, tags: ['information_source'] },
  resolved: { priority: 3, tags: ['white_check_mark'] },
} as const

/** More than 4096 bytes would arrive as an attached file. */
export function ntfyBody(message: AlertMessage) {
  const content = contentOf(message)
  const click = content.links.find(({ label }) => label === 'Web UI')?.value
  return {
    title: cutBytes(content.title, 250),
    message: cutBytes(shortText(content, 3500), 3800),
    ...TONES[content.tone],
    ...(click === undefined ? {} : { click }),
    actions: content.links.map(({ label, value }) => ({ action: 'view', label, url: value })),
  }
}
