import type { Outcome } from './outbox.ts'

const LONGEST_REASON = 300

export interface Post {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
}

export async function post({ url, headers, body }: Post, signal: AbortSignal): Promise<Outcome> {
  const { target, authorization } = splitCredentials(url)
  const answer = await fetch(target, {
    method: 'POST',
    headers: { ...authorization, ...headers },
    body: typeof body === 'string' ? body : new Uint8Array(body),
    signal,
    // A redirect of a POST loses its body; the address has to be right.
    redirect: 'manual',
  })
  const text = await answer.text()
  return outcomeOf(answer.status, text, answer.headers.get('retry-after'))
}

export function outcomeOf(status: number, text: string, retryAfter: string | null): Outcome {
  if (status >= 200 && status < 300) return { ok: true }
  const reason = `HTTP ${status}${text.trim() === '' ? '' : `: ${text.trim().slice(0, LONGEST_REASON)}`}`
  const retry = status >= 500 || status === 408 || status === 429
  const afterMs = retryAfterMs(retryAfter)
  return afterMs === null ? { ok: false, retry, reason } : { ok: false, retry, reason, afterMs }
}

function retryAfterMs(text: string | null): number | null {
  if (text === null) return null
  const seconds = Number(text)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : null
}

/** fetch() refuses an address with a user name in it; as a header it is what was meant. */
export function splitCredentials(url: string): { target: string; authorization: Record<string, string> } {
  const parsed = new URL(url)
  if (parsed.username === '') return { target: url, authorization: {} }
  const [user, password] = [parsed.username, parsed.password].map(decodeURIComponent)
  parsed.username = ''
  parsed.password = ''
  return { target: parsed.href, authorization: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` } }
}
