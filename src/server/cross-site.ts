/** A browser sends along what a page of another site asks for; such requests are refused. */
import type { IncomingHttpHeaders } from 'node:http'

/** Why this request is another site's, or null. Programs other than browsers send neither header. */
export function crossSiteReason(method: string, headers: IncomingHttpHeaders): string | null {
  const site = headers['sec-fetch-site']
  if (method === 'GET' || method === 'HEAD') {
    // Reading is closed to other sites by the missing CORS headers; this also keeps their pages from using up the stream's places.
    return site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate' ? 'Sec-Fetch-Site is cross-site' : null
  }
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'Sec-Fetch-Site is not same-origin'
  const origin = headers.origin
  if (origin === undefined) return null
  return originHost(origin) === headers.host?.toLowerCase() ? null : 'Origin is not this server'
}

function originHost(origin: string): string | null {
  return /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]?.toLowerCase() ?? null
}
