/** Reads the body of a request, within a limit. */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import type { Route } from '../route.ts'
import type { ErrorCode } from '../route-errors.ts'

export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024

export type BodyResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string }

export async function readBody(
  incoming: IncomingMessage,
  schema: z.ZodType,
  { bodyAs = 'json', bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES }: Pick<Route, 'bodyAs' | 'bodyLimitBytes'>,
): Promise<BodyResult> {
  const type = incoming.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (bodyAs === 'json' && type !== 'application/json') {
    const hint = 'Send the header Content-Type: application/json.'
    return { ok: false, code: 'unsupported_media_type', message: 'This route takes a body of type application/json.', hint }
  }
  if ((incoming.headers['content-encoding'] ?? 'identity') !== 'identity') {
    return {
      ok: false,
      code: 'unsupported_media_type',
      message: 'A compressed body is not taken.',
      hint: 'Send it without Content-Encoding.',
    }
  }
  const bytes = await collect(incoming, bodyLimitBytes)
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
        hint: 'NaN and Infinity are no JSON: send them as strings.',
      }
    }
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const [issue] = parsed.error.issues
  const where = issue && issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  return { ok: false, code: 'invalid_body', message: `${where}${issue?.message ?? 'not valid'}`, hint: 'See /openapi.json for its shape.' }
}

/** Stops reading at the limit, without destroying the connection: the answer still has to go out on it. */
function collect(incoming: IncomingMessage, limitBytes: number): Promise<Buffer | 'too_large' | 'cut_off'> {
  if (Number(incoming.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (result: Buffer | 'too_large' | 'cut_off') => {
      incoming.off('data', onData).off('end', onEnd).off('close', onCut).off('error', onCut)
      resolve(result)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= limitBytes) chunks.push(chunk)
      else {
        incoming.pause()
        settle('too_large')
      }
    }
    const onEnd = () => settle(Buffer.concat(chunks))
    const onCut = () => settle('cut_off')
    incoming.on('data', onData).on('end', onEnd).on('close', onCut).on('error', onCut)
  })
}
