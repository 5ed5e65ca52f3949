/** Files of a dashboard, from a table in memory: no path of a request reaches the file system. */
import { type Reply, reply } from '../route.ts'

export interface Asset {
  readonly body: string | Uint8Array
  readonly type: string
  /** Cache-Control: `no-cache` for the page, `public, max-age=31536000, immutable` for files with a hash in their name. */
  readonly cache: string
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
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

export function assetReply({ body, type, cache }: Asset): Reply {
  return reply({ body, type, headers: { 'cache-control': cache, 'content-security-policy': PAGE_POLICY } })
}
