/** Reads a batch: plain or gzip, within a limit that also applies to the unpacked size. */
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { mediaType, readBounded } from '../core/bounded-body.ts'
import type { ErrorCode } from '../core/route-errors.ts'

export const BATCH_LIMIT_BYTES = 4 * 1024 * 1024

export type BatchBody =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string }

const TYPES = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl'])
const unpack = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip)

export async function readBatch(incoming: IncomingMessage): Promise<BatchBody> {
  if (!TYPES.has(mediaType(incoming)))
    return fault(
      'unsupported_media_type',
      'This route expects a body of type application/x-ndjson.',
      'Send one JSON object per line, with Content-Type: application/x-ndjson.',
    )
  const encoding = (incoming.headers['content-encoding'] ?? 'identity').toLowerCase()
  if (encoding !== 'identity' && encoding !== 'gzip')
    return fault('unsupported_media_type', 'This route accepts gzip or no compression.', 'Send Content-Encoding: gzip, or none.')
  const bytes = await readBounded(incoming, BATCH_LIMIT_BYTES)
  if (bytes === 'too_large') return tooLarge()
  if (bytes === 'cut_off') return fault('invalid_body', 'The body ended early.', 'Send it again.')
  if (encoding === 'identity') return { ok: true, bytes }
  try {
    return { ok: true, bytes: await unpack(bytes, { maxOutputLength: BATCH_LIMIT_BYTES }) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge()
    return fault('invalid_body', 'The body is marked as gzip but cannot be unpacked.', 'Send it again, or without Content-Encoding.')
  }
}

function tooLarge(): BatchBody {
  return fault('body_too_large', `The batch is larger than ${BATCH_LIMIT_BYTES} bytes.`, 'Send it in several requests.')
}

function fault(code: ErrorCode, message: string, hint: string): BatchBody {
  return { ok: false, code, message, hint }
}
