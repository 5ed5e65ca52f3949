/** Signing in and out of the web UI. */
import { z } from 'zod'
import type { AgentState } from '../core/kinds.ts'
import { type Route, type RouteContext, route } from '../core/route.ts'
import { refuseEntry } from './dispatch.ts'
import type { Gate } from './gate.ts'
import { type CookiePlace, sessionCookies, setCookie } from './session.ts'

const BODY_LIMIT_BYTES = 4096
const PATH = '/api/v1/session'

const body = z.strictObject({ token: z.string().trim().min(1) })
const nothing = z.strictObject({})

export interface SessionOptions {
  readonly state: AgentState
  readonly version: string
  readonly gate: () => Promise<Gate>
  readonly canKill: (gate: Gate) => boolean
}

export function sessionRoutes({ state, version, gate, canKill }: SessionOptions): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: PATH,
      summary: 'Whether a token is needed, and whether this client is signed in',
      query: nothing,
      answer: z.strictObject({
        required: z.boolean(),
        signedIn: z.boolean(),
        canKill: z.boolean().describe('Whether signals may be sent to processes from here'),
        hostname: z.string().nullable().describe('null until signed in'),
        version: z.string().nullable().describe('null until signed in'),
      }),
      open: true,
      async handler({ address, header, raw }) {
        const entry = await gate()
        const signedIn = entry.check(address, header('authorization'), sessionCookies(placeOf(raw))).ok
        return {
          required: entry.required,
          signedIn,
          canKill: signedIn && canKill(entry),
          hostname: signedIn ? state.hostname : null,
          version: signedIn ? version : null,
        }
      },
    }),
    route({
      method: 'POST',
      path: PATH,
      summary: 'Signs in with the token; answers with a cookie that lasts 30 days',
      query: nothing,
      body,
      bodyLimitBytes: BODY_LIMIT_BYTES,
      answer: z.strictObject({
        signedIn: z.literal(true),
        expiresAt: z.number().nullable().describe('Epoch milliseconds; null when no token is needed'),
      }),
      errors: ['wrong_token', 'too_many_attempts'],
      open: true,
      async handler({ address, body: { token }, raw, reply }) {
        const entered = (await gate()).signIn(address, token)
        if (!entered.ok) return refuseEntry(entered)
        const { session } = entered
        const headers: Record<string, string> = session ? { 'set-cookie': setCookie(placeOf(raw), session.value) } : {}
        return reply({ body: JSON.stringify({ signedIn: true, expiresAt: session?.expiresAt ?? null }), headers })
      },
    }),
    route({
      method: 'DELETE',
      path: PATH,
      summary: 'Signs this browser out',
      query: nothing,
      answer: z.strictObject({ signedIn: z.literal(false) }),
      open: true,
      handler: ({ raw, reply }) =>
        reply({ body: JSON.stringify({ signedIn: false }), headers: { 'set-cookie': setCookie(placeOf(raw), '') } }),
    }),
  ]
}

function placeOf({ incoming }: RouteContext['raw']): CookiePlace {
  return { headers: incoming.headers, localPort: incoming.socket.localPort }
}
