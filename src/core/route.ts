/** What the server serves: one entry per route, from which the router, the checks and /openapi.json are made. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { Log } from './kinds.ts'
import type { ErrorCode } from './route-errors.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Route<Query = unknown, Body = unknown> {
  readonly method: Method
  /** `/api/v1/gpus/:label` */
  readonly path: string
  readonly summary: string
  /** Shape of the query: values are strings, or lists of strings when given repeatedly. Without it the query is ignored. */
  readonly query?: z.ZodType<Query>
  /** Shape of the body; without it a body is not read. */
  readonly body?: z.ZodType<Body>
  /** `json` (the default) parses it first; `text` hands the string to the schema. */
  readonly bodyAs?: 'json' | 'text'
  readonly bodyLimitBytes?: number
  readonly answer: z.ZodType
  /** Of the answer, when it is not JSON. */
  readonly answerType?: string
  /** Codes that the handler itself refuses with. */
  readonly errors?: readonly ErrorCode[]
  /** Served without the token. */
  readonly open?: true
  /** Returns the answer, to be sent as JSON with status 200, or a reply made by the context. */
  handler(context: RouteContext<Query, Body>): unknown
}

export interface RouteContext<Query = unknown, Body = unknown> {
  readonly requestId: string
  readonly traceId: string
  /** Of the other side; empty when it has gone already. */
  readonly address: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  /** Bound to the request and trace ids. */
  readonly log: Log
  header(name: string): string | undefined
  reply(init: ReplyInit): Reply
  refuse(code: ErrorCode, message: string, hint?: string, headers?: Readonly<Record<string, string>>): Reply
  /** For streams: takes the response over; the handler then returns `taken`. `headers` are those every answer carries. */
  readonly raw: RawExchange
}

export interface RawExchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly headers: Readonly<Record<string, string>>
  readonly taken: Reply
}

export interface ReplyInit {
  readonly status?: number
  readonly type?: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** A 5xx that is an answer and not a fault: logged as any other request. */
  readonly expected?: true
}

const REPLY = Symbol('reply')

export interface Reply extends ReplyInit {
  readonly [REPLY]: true
}

export function reply(init: ReplyInit): Reply {
  return { ...init, [REPLY]: true }
}

export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && REPLY in value
}

/** The handler has taken the response over. */
export const TAKEN: Reply = reply({})

/** Gives a route its types from its schemas. */
export function route<Query = unknown, Body = unknown>(entry: Route<Query, Body>): Route<Query, Body> {
  return entry
}
