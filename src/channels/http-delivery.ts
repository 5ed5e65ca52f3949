/** One HTTP request, and what its answer means for the delivery. */
import { z } from 'zod'
import type { Delivery } from '../core/alert-contract.ts'
import { addressFault } from '../core/web-address.ts'
import { oneLine } from './plain-text.ts'
import { isReference, type Redact } from './secrets.ts'

const TIME_LIMIT_MS = 15_000
const MOST_ANSWER_BYTES = 4096

/** A web address, or a reference to one. */
export const webAddress = z.string().superRefine((text, context) => {
  if (isReference(text)) return
  const url = URL.canParse(text) ? new URL(text) : null
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    return void context.addIssue({ code: 'custom', message: 'expected an address that begins with https:// or http://' })
  const fault = addressFault(url)
  if (fault !== null) context.addIssue({ code: 'custom', message: fault })
})

/** A token, key or password. Line ends would break out of a header. */
export const secretText = z
  .string()
  .min(1, 'expected a value')
  .refine((text) => !/[\r\n]/.test(text.trimEnd()), 'expected a single line')

export interface HttpRequest {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer>
}

export interface HttpContext {
  readonly signal: AbortSignal
  readonly timeoutMs: number | undefined
  readonly redact: Redact
}

/** `status` null: no answer came; `text` says why. */
export interface HttpAnswer {
  readonly host: string
  readonly status: number | null
  readonly text: string
  readonly retryAfter: string | null
}

export function postJson(
  url: string,
  body: unknown,
  context: HttpContext,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer> {
  return post({ url, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }, context)
}

export async function post(
  { url, headers, body }: HttpRequest,
  { signal, timeoutMs = TIME_LIMIT_MS, redact }: HttpContext,
): Promise<HttpAnswer> {
  const { host } = new URL(url)
  const limit = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'user-agent': 'gpuwarden', ...headers },
      body,
      // A redirect would send the secrets in the address and headers to another server.
      redirect: 'manual',
      signal: AbortSignal.any([signal, limit]),
    })
    const text = oneLine(redact(await beginningOf(response)))
    return { host, status: response.status, text, retryAfter: response.headers.get('retry-after') }
  } catch (cause) {
    const reason = signal.aborted ? 'canceled' : limit.aborted ? `no answer within ${timeoutMs / 1000} s` : networkReason(cause)
    return { host, status: null, text: oneLine(redact(reason)), retryAfter: null }
  }
}

async function beginningOf(response: Response): Promise<string> {
  if (!response.body) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = response.body.getReader()
  while (bytes < MOST_ANSWER_BYTES) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    bytes += value.length
  }
  await reader.cancel()
  return Buffer.concat(chunks).subarray(0, MOST_ANSWER_BYTES).toString()
}

/** fetch hides the reason in the cause. */
function networkReason(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string; errors?: readonly Error[] } }
  const detail = cause?.message || cause?.errors?.[0]?.message || (error as Error).message
  return cause?.code === undefined || detail.includes(cause.code) ? detail : `${detail} (${cause.code})`
}

/** 2xx is delivered; what may be temporary is tried again; everything else would be refused again. */
export function judge({ host, status, text, retryAfter }: HttpAnswer): Delivery {
  if (status === null) return { ok: false, retry: true, reason: `${host}: ${text}` }
  const words = `${host} answered ${status}${text === '' ? '' : `: ${text}`}`
  if (status >= 200 && status < 300) return { ok: true, answer: words }
  if (status >= 300 && status < 400)
    return { ok: false, retry: false, reason: `${words} (redirects are not followed: configure the final address)` }
  const retry = status === 408 || status === 425 || status === 429 || status >= 500
  const wait = retry && retryAfter !== null ? ` (it asks to wait ${oneLine(retryAfter, 40)})` : ''
  return { ok: false, retry, reason: words + wait }
}
