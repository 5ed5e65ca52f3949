/** Reads the body of a request within its limit, and checks it against the shape that the route expects. */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { mediaType, readBounded } from '../core/bounded-body.ts'
import type { Route } from '../core/route.ts'
import type { ErrorCode } from '../core/route-errors.ts'

export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024

export type BodyResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string }

export async function readBody(
  incoming: IncomingMessage,
  schema: z.ZodType,
  { bodyAs = 'json', bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES }: Pick<Route, 'bodyAs' | 'bodyLimitBytes'>,
): Promise<BodyResult> {
  if (bodyAs === 'json' && mediaType(incoming) !== 'application/json') {
    const hint = 'Send the header Content-Type: application/json.'
    return { ok: false, code: 'unsupported_media_type', message: 'This route expects a body of type application/json.', hint }
  }
  if ((incoming.headers['content-encoding'] ?? 'identity') !== 'identity') {
    return {
      ok: false,
      code: 'unsupported_media_type',
      message: 'A compressed body is not accepted.',
      hint: 'Send it without Content-Encoding.',
    }
  }
  const bytes = await readBounded(incoming, bodyLimitBytes)
  if (bytes === 'too_large') {
    const hint = 'Send it in several requests.'
    return { ok: false, code: 'body_too_large', message: `The body is larger than ${bodyLimitBytes} bytes.`, hint }
  }
  if (bytes === 'cut_off') return { ok: false, code: 'invalid_body', message: 'The body ended early.', hint: 'Send it again.' }
  return validate(bytes.toString('utf8'), schema, bodyAs)
}

function validate(text: string, schema: z.ZodType, bodyAs: 'json' | 'text'): BodyResult {
  let value: unknown = text
  if (bodyAs === 'json') {
    try {
      value = JSON.parse(text)
    } catch {
      return {
        ok: false,
        code: 'invalid_body',
        message: 'The body is not JSON.',
        hint: 'NaN and Infinity are not JSON: send them as strings.',
      }
    }
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const [issue] = parsed.error.issues
  const where = issue && issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  return {
    ok: false,
    code: 'invalid_body',
    message: `${where}${issue?.message ?? 'not valid'}`,
    hint: 'See /openapi.json for the expected shape.',
  }
}
