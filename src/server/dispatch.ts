/** What happens to every request, in this order: host, origin, token or session, query, body, handler, answer, log. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toJson } from '../core/json-text.ts'
import type { Log } from '../core/kinds.ts'
import { isReply, type Reply, type Route, type RouteContext, reply, TAKEN } from '../core/route.ts'
import { ERRORS, type ErrorCode, errorBody } from '../core/route-errors.ts'
import { readBody } from './body.ts'
import { crossSiteReason, unprovenOriginReason } from './cross-site.ts'
import type { Gate, Refusal } from './gate.ts'
import { hostOf } from './host-check.ts'
import { checkQuery, parseQuery } from './query.ts'
import { commonHeaders, send } from './send.ts'
import { sessionCookies } from './session.ts'
import { traceOf } from './trace.ts'

export interface DispatchOptions {
  readonly log: Log
  readonly gate: Gate
  readonly allowsHost: (header: string | undefined) => boolean
}

export interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

/** A route, or what answers instead of one (404, 405, files of the web UI). */
export type Target = Pick<Route, 'handler'> & Partial<Route>

export type Dispatch = (target: Target, exchange: Exchange) => Promise<void>

const LONGEST_PATH = 200

export function createDispatch({ log, gate, allowsHost }: DispatchOptions): Dispatch {
  function check({ open }: Target, { incoming }: Exchange): Reply | null {
    const { headers, method = 'GET', socket } = incoming
    if (headers.host !== undefined && hostOf(headers.host) === null)
      return refuse('malformed_request', 'The Host header cannot be parsed.', 'Send the name of this server, and its port.')
    if (!allowsHost(headers.host)) {
      const hint = 'Use localhost or the name of this host, or add the name to server.allowed_hosts.'
      return refuse('forbidden_host', 'The Host header does not name this server.', hint)
    }
    const cookies = gate.required ? sessionCookies({ headers, localPort: socket.localPort }) : []
    const isByCookie = cookies.length > 0 && headers.authorization === undefined
    const reason = isByCookie ? unprovenOriginReason(method, headers) : crossSiteReason(method, headers)
    if (reason !== null)
      return refuse('cross_site', `Requests from pages of other sites are refused: ${reason}.`, 'Open the web UI of this server directly.')
    if (open) return null
    const verdict = gate.check(socket.remoteAddress ?? '', headers.authorization, cookies)
    return verdict.ok ? null : refuseEntry(verdict)
  }

  return async (target, exchange) => {
    const startedMs = performance.now()
    const { incoming, outgoing, path, params } = exchange
    const trace = traceOf(incoming.headers.traceparent?.toString())
    const requestLog = log.child({ request_id: trace.spanId, trace_id: trace.traceId })
    const headers = commonHeaders(trace)
    const context: Omit<RouteContext, 'query' | 'body'> = {
      requestId: trace.spanId,
      traceId: trace.traceId,
      address: incoming.socket.remoteAddress ?? '',
      params,
      log: requestLog,
      header: (name) => incoming.headers[name.toLowerCase()]?.toString(),
      reply,
      refuse,
      raw: { incoming, outgoing, headers, taken: TAKEN },
    }
    let answer: Reply
    let fault: unknown
    try {
      answer = check(target, exchange) ?? (await run(target, context, incoming))
    } catch (error) {
      fault = error
      answer = refuse('internal', 'gpuwarden failed to answer because of an internal error.', `Look for ${trace.spanId} in its log.`)
    }
    const status = answer === TAKEN ? outgoing.statusCode : (answer.status ?? 200)
    try {
      if (answer !== TAKEN) await send(incoming, outgoing, answer, headers)
    } catch (error) {
      requestLog.error({ err: error, path: path.slice(0, LONGEST_PATH) }, 'an answer could not be sent')
      outgoing.destroy()
      return
    }
    const fields = {
      method: incoming.method,
      path: path.slice(0, LONGEST_PATH),
      status,
      ms: Math.round((performance.now() - startedMs) * 100) / 100,
    }
    if (status < 500 || answer.expected) requestLog.debug(fields, 'request')
    else requestLog.warn(fault === undefined ? fields : { ...fields, err: fault }, 'request failed')
  }
}

async function run(target: Target, context: Omit<RouteContext, 'query' | 'body'>, incoming: IncomingMessage): Promise<Reply> {
  const query = checkQuery(parseQuery(incoming.url ?? ''), target.query)
  if (!query.ok) return refuse(query.code, query.message, query.hint)
  let body: unknown
  if (target.body) {
    const read = await readBody(incoming, target.body, target)
    // The rest of a body that was not read must not be taken for the next request.
    if (!read.ok) return refuse(read.code, read.message, read.hint, { connection: 'close' })
    body = read.value
  }
  const value = await target.handler({ ...context, query: query.value, body })
  return isReply(value) ? value : reply({ body: toJson(value) })
}

/** Why a client is refused, and what it must send. */
export function refuseEntry(refusal: Refusal): Reply {
  if (refusal.code === 'too_many_attempts') {
    const retryAfter = String(Math.ceil(refusal.waitMs / 1000))
    return refuse(refusal.code, 'Too many wrong tokens came from this address.', `Wait ${retryAfter} s.`, {
      'retry-after': retryAfter,
      connection: 'close',
    })
  }
  const message = refusal.code === 'missing_token' ? 'This server needs a token.' : 'The token is wrong.'
  const hint = 'Send the header "Authorization: Bearer <token>", or sign in at /; a token in the URL is not accepted.'
  return refuse(refusal.code, message, hint, { 'www-authenticate': 'Bearer realm="gpuwarden"' })
}

export function refuse(code: ErrorCode, message: string, hint?: string, headers?: Readonly<Record<string, string>>): Reply {
  return reply({ status: ERRORS[code].status, body: JSON.stringify(errorBody(code, message, hint)), ...(headers ? { headers } : {}) })
}
