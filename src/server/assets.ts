/** Files of a web UI, from a table in memory: no path from a request reaches the file system. */
import { type Reply, reply } from '../core/route.ts'
import { type FileEncoding, fileEncodingFor } from './accept.ts'

export interface Asset {
  readonly body: string | Uint8Array
  readonly type: string
  /** Cache-Control: `no-cache` for the page, `public, max-age=31536000, immutable` for files with a hash in their name. */
  readonly cache: string
  /** Names the content, without quotation marks. */
  readonly tag?: string
  /** The body in this encoding, compressed once; null where that would not make it smaller. */
  readonly encoded?: (encoding: FileEncoding) => Promise<Uint8Array | null>
}

/** null: there is no such file. `/` is the page itself. */
export type Assets = (path: string) => Asset | null

const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

export async function assetReply(asset: Asset, header: (name: string) => string | undefined): Promise<Reply> {
  const { type, cache, tag } = asset
  const headers: Record<string, string> = { 'cache-control': cache, 'content-security-policy': PAGE_POLICY }
  if (!asset.encoded) return reply({ body: asset.body, type, headers })
  const encoding = fileEncodingFor(header('accept-encoding'))
  const smaller = encoding === null ? null : await asset.encoded(encoding)
  headers.vary = 'Accept-Encoding'
  if (tag !== undefined) {
    // A strong tag stands for exact bytes: each encoding has its own.
    const etag = smaller === null ? `"${tag}"` : `"${tag}-${encoding}"`
    headers.etag = etag
    if (matches(header('if-none-match'), etag)) return reply({ status: 304, type, headers })
  }
  if (smaller === null || encoding === null) return reply({ body: asset.body, type, headers })
  return reply({ body: smaller, type, headers: { ...headers, 'content-encoding': encoding } })
}

/** Proxies that compress make a tag weak; it is still the same one here. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((part) => {
    const given = part.trim()
    return given === '*' || given.replace(/^W\//, '') === etag
  })
}
