/** What a browser holds instead of the token: a signed cookie that only the token could make, and that the server need not store. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export const SESSION_SECONDS = 30 * 86_400
const NONCE_BYTES = 16
/** Seconds since the epoch, nonce, HMAC-SHA256: the last two in base64url. */
const SHAPE = /^(\d{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

export interface Session {
  readonly value: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

export interface Sessions {
  issue(): Session
  isValid(value: string): boolean
}

/** `now`: epoch milliseconds. The key comes from the token, so a new token ends every session and a restart ends none. */
export function createSessions(token: string, now: () => number): Sessions {
  const key = createHmac('sha256', token).update('gpuwarden session 1').digest()
  const sign = (expiry: string, nonce: string) => createHmac('sha256', key).update(`${expiry}.${nonce}`).digest('base64url')
  return {
    issue() {
      const seconds = Math.floor(now() / 1000) + SESSION_SECONDS
      const nonce = randomBytes(NONCE_BYTES).toString('base64url')
      return { value: `${seconds}.${nonce}.${sign(String(seconds), nonce)}`, expiresAt: seconds * 1000 }
    },
    isValid(value) {
      const [, expiry, nonce, signature] = SHAPE.exec(value) ?? []
      if (expiry === undefined || nonce === undefined || signature === undefined) return false
      // As text: the last character of base64url has bits that decoding would ignore.
      return timingSafeEqual(Buffer.from(sign(expiry, nonce)), Buffer.from(signature)) && Number(expiry) * 1000 > now()
    },
  }
}

export interface CookiePlace {
  readonly headers: IncomingHttpHeaders
  readonly localPort: number | undefined
}

/** Browsers share cookies between the ports of a host, so the name has the port that the browser used (a container may map it). */
export function cookieName({ headers, localPort }: CookiePlace): string {
  return `gpuwarden_session_${/:(\d{1,5})$/.exec(headers.host ?? '')?.[1] ?? localPort ?? 0}`
}

/** The values of our cookie in this request; several when somebody added another one. */
export function sessionCookies(place: CookiePlace): readonly string[] {
  const header = place.headers.cookie
  if (header === undefined) return []
  const start = `${cookieName(place)}=`
  const values: string[] = []
  for (const part of header.split(';')) {
    const pair = part.trim()
    if (pair.startsWith(start)) values.push(pair.slice(start.length))
  }
  return values
}

/** The Set-Cookie header; an empty value deletes the cookie. */
export function setCookie(place: CookiePlace, value: string): string {
  // This server has no TLS, but a proxy in front of it may: then the browser's origin says so.
  const secure = place.headers.origin?.toLowerCase().startsWith('https://') ? '; Secure' : ''
  return `${cookieName(place)}=${value}; Path=/; Max-Age=${value === '' ? 0 : SESSION_SECONDS}; HttpOnly; SameSite=Strict${secure}`
}
