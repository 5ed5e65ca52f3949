/** One entry per route, from which the router, the checks and /openapi.json are made. */
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
  /** Values are strings, or lists of strings when repeated. Without it the query is ignored. */
  readonly query?: z.ZodType<Query>
  /** Without it a body is not read. */
  readonly body?: z.ZodType<Body>
  /** `json` (default) parses it first; `text` passes the string to the schema. */
  readonly bodyAs?: 'json' | 'text'
  readonly bodyLimitBytes?: number
  readonly answer: z.ZodType
  /** When the answer is not JSON. */
  readonly answerType?: string
  /** Codes of the handler itself. */
  readonly errors?: readonly ErrorCode[]
  /** Served without the token. */
  readonly open?: true
  /** Returns the answer, sent as JSON with status 200, or a reply from the context. */
  handler(context: RouteContext<Query, Body>): unknown
}

export interface RouteContext<Query = unknown, Body = unknown> {
  readonly requestId: string
  readonly traceId: string
  /** Of the client; empty when it has left. */
  readonly address: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  /** Bound to the request and trace ids. */
  readonly log: Log
  header(name: string): string | undefined
  reply(init: ReplyInit): Reply
  refuse(code: ErrorCode, message: string, hint?: string, headers?: Readonly<Record<string, string>>): Reply
  /** For streams: the handler writes the response and returns `taken`. `headers`: those of every answer. */
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
  /** A 5xx that is an answer, not a fault: logged like any other. */
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

export const TAKEN: Reply = reply({})

/** Infers the types from the schemas. */
export function route<Query = unknown, Body = unknown>(entry: Route<Query, Body>): Route<Query, Body> {
  return entry
}
