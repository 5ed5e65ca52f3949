/** Any web service: gpuwarden's own JSON or a template, signed where a secret is given. */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { channelKind } from './channel-kind.ts'
import { judge, post, secretText, webAddress } from './http-delivery.ts'
import { PAYLOAD_NAMES, payloadOf } from './payload.ts'
import { oneLine } from './plain-text.ts'
import { redactor, secretsOfUrl } from './secrets.ts'
import { fillTemplate, type Json, placeholderRoots } from './template.ts'

const headerName = z.string().regex(/^[!#$%&'*+.^`|~\w-]+$/, 'expected the name of a header, such as X-Api-Key')
const headerValue = z.string().regex(/^[\t\x20-\x7e]*$/, 'expected a value of printable ASCII characters on one line')

const template = z.json().superRefine((value, context) => {
  const known: ReadonlySet<string> = new Set(PAYLOAD_NAMES)
  for (const root of placeholderRoots(value as Json))
    if (!known.has(root))
      context.addIssue({ code: 'custom', message: `unknown placeholder {{${root}}}: expected one of ${PAYLOAD_NAMES.join(', ')}` })
})

const schema = z.strictObject({
  url: webAddress,
  headers: z.record(headerName, headerValue).default({}),
  /** Signs every body: docs/channels.md says how to check it. */
  secret: secretText.optional(),
  template: template.optional(),
})

export const webhook = channelKind({
  name: 'webhook',
  schema,
  create(name, { url, headers, secret, template: form }, { timeoutMs }) {
    const redact = redactor([...secretsOfUrl(url), ...Object.values(headers), secret])
    return {
      name,
      async deliver(message, signal) {
        const payload = payloadOf(message)
        const body = JSON.stringify(form === undefined ? payload : fillTemplate(form as Json, payload))
        const signed = secret === undefined ? {} : signatureHeaders(secret, body, Math.floor(Date.now() / 1000))
        const own = { 'content-type': 'application/json', 'idempotency-key': oneLine(message.id, 200).replace(/[^\x20-\x7e]/g, '?') }
        return judge(await post({ url, headers: { ...own, ...headers, ...signed }, body }, { signal, timeoutMs, redact }))
      },
    }
  },
})

/** The time is signed too, so that a recorded request cannot be replayed later. */
export function signatureHeaders(secret: string, body: string, seconds: number): Record<string, string> {
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
  return { 'x-gpuwarden-timestamp': String(seconds), 'x-gpuwarden-signature': `sha256=${signature}` }
}
