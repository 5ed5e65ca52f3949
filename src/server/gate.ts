/** Lets a request in when its token is the configured one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createFailedTries } from './failed-tries.ts'

export type Verdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: 'missing_token' | 'wrong_token' }
  | { readonly ok: false; readonly code: 'too_many_attempts'; readonly waitMs: number }

export interface Gate {
  check(address: string, authorization: string | undefined): Verdict
}

const OPEN: Verdict = { ok: true }

export function createGate(token: string | null, now: () => number = () => performance.now()): Gate {
  if (token === null) return { check: () => OPEN }
  const expected = digest(token)
  const tries = createFailedTries({ now })
  return {
    check(address, authorization) {
      if (authorization === undefined) return { ok: false, code: 'missing_token' }
      const waitMs = tries.waitMs(address)
      if (waitMs > 0) return { ok: false, code: 'too_many_attempts', waitMs }
      const given = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
      // Equal lengths, whatever was sent, and a comparison that takes equally long for every difference.
      if (timingSafeEqual(digest(given ?? ''), expected)) return OPEN
      tries.count(address)
      return { ok: false, code: 'wrong_token' }
    },
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
