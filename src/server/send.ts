/** Sends a reply: the headers of every answer, and compression for clients that accept it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { deflate, gzip } from 'node:zlib'
import type { Reply } from '../core/route.ts'
import { encodingFor } from './accept.ts'
import { type Trace, traceparent } from './trace.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'
export const COMPRESS_FROM_BYTES = 1024
const COMPRESSIBLE = /^(?:text\/|application\/(?:json|javascript|openmetrics-text|manifest\+json|wasm)|image\/svg\+xml)/
/** Fast: a live answer is read once, and the wire is short. */
const LEVEL = 4

const compress = { gzip: promisify(gzip), deflate: promisify(deflate) }

export function commonHeaders(trace: Trace): Record<string, string> {
  return {
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    traceparent: traceparent(trace),
    'x-request-id': trace.spanId,
  }
}

export async function send(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  reply: Reply,
  common: Readonly<Record<string, string>>,
): Promise<void> {
  const type = reply.type ?? JSON_TYPE
  const headers: Record<string, string> = { ...common, 'content-type': type, ...reply.headers }
  let body: string | Uint8Array = reply.body ?? ''
  let bytes = Buffer.byteLength(body)
  if (bytes > COMPRESS_FROM_BYTES && isCompressible(type) && !isNegotiated(reply)) {
    headers.vary = headers.vary === undefined ? 'Accept-Encoding' : `${headers.vary}, Accept-Encoding`
    const encoding = encodingFor(incoming.headers['accept-encoding']?.toString())
    if (encoding !== null) {
      body = await compress[encoding](body, { level: LEVEL })
      bytes = body.length
      headers['content-encoding'] = encoding
    }
  }
  // The client may have gone in the meantime.
  if (outgoing.destroyed || outgoing.headersSent) return
  // A 304 has no body; a length would be taken for that of the content it stands for.
  if (reply.status !== 304) headers['content-length'] = String(bytes)
  outgoing.writeHead(reply.status ?? 200, headers)
  outgoing.end(body)
}

export function isCompressible(type: string): boolean {
  return COMPRESSIBLE.test(type)
}

/** Whoever made the reply has already chosen its encoding. */
function isNegotiated({ headers }: Reply): boolean {
  return headers?.vary?.toLowerCase().includes('accept-encoding') ?? false
}
