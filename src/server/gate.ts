/** Lets a request in when it has the configured token, or a session made from it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createFailedTries } from './failed-tries.ts'
import { createSessions, type Session } from './session.ts'

export type Refusal =
  | { readonly ok: false; readonly code: 'missing_token' | 'wrong_token' }
  | { readonly ok: false; readonly code: 'too_many_attempts'; readonly waitMs: number }

export type Verdict = { readonly ok: true } | Refusal

export interface Gate {
  /** False: no token is configured, and everybody is let in. */
  readonly required: boolean
  /** `cookies`: values of the session's cookie. A wrong or expired one counts as none. */
  check(address: string, authorization: string | undefined, cookies?: readonly string[]): Verdict
  /** A token that somebody typed in. The session is null when none is needed. */
  signIn(address: string, token: string): { readonly ok: true; readonly session: Session | null } | Refusal
}

export interface GateClocks {
  /** Monotonic milliseconds. */
  readonly monotonic?: () => number
  /** Epoch milliseconds. */
  readonly now?: () => number
}

const OPEN: Verdict = { ok: true }

export function createGate(token: string | null, { monotonic = () => performance.now(), now = () => Date.now() }: GateClocks = {}): Gate {
  if (token === null) return { required: false, check: () => OPEN, signIn: () => ({ ok: true, session: null }) }
  const expected = digest(token)
  const tries = createFailedTries({ now: monotonic })
  const sessions = createSessions(token, now)

  function judge(address: string, given: string): Verdict {
    // First, so that nobody's wrong tokens keep the right one out. Equal lengths whatever was sent, and a comparison in constant time.
    if (timingSafeEqual(digest(given), expected)) return OPEN
    const waitMs = tries.waitMs(address)
    if (waitMs > 0) return { ok: false, code: 'too_many_attempts', waitMs }
    tries.count(address)
    return { ok: false, code: 'wrong_token' }
  }

  return {
    required: true,
    check(address, authorization, cookies = []) {
      if (authorization !== undefined) return judge(address, /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? '')
      return cookies.some((cookie) => sessions.isValid(cookie)) ? OPEN : { ok: false, code: 'missing_token' }
    },
    signIn(address, given) {
      const verdict = judge(address, given)
      return verdict.ok ? { ok: true, session: sessions.issue() } : verdict
    },
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
