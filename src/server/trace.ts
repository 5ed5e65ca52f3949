/** Correlates a request with its caller's trace, by the W3C Trace Context header `traceparent`. */
import { randomBytes } from 'node:crypto'

export interface Trace {
  readonly traceId: string
  /** Of this request; also its request id. */
  readonly spanId: string
  /** Span of the caller; null when it sent none. */
  readonly parentId: string | null
  readonly flags: string
}

const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

/** A valid header keeps its trace id; anything else starts a new trace. */
export function traceOf(traceparent: string | undefined): Trace {
  const match = traceparent === undefined ? null : SHAPE.exec(traceparent)
  const [, version, traceId, parentId, flags, rest] = match ?? []
  const valid =
    version !== undefined &&
    version !== 'ff' &&
    !(version === '00' && rest !== undefined) &&
    traceId !== undefined &&
    traceId !== NO_TRACE &&
    parentId !== undefined &&
    parentId !== NO_SPAN
  const spanId = randomBytes(8).toString('hex')
  if (!valid || flags === undefined) return { traceId: randomBytes(16).toString('hex'), spanId, parentId: null, flags: '00' }
  // Version 00 has one flag, "sampled"; the others must be sent on as zero.
  return { traceId, spanId, parentId, flags: (Number.parseInt(flags, 16) & 1) === 1 ? '01' : '00' }
}

export function traceparent({ traceId, spanId, flags }: Trace): string {
  return `00-${traceId}-${spanId}-${flags}`
}
