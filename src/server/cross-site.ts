/** Refuses requests that a browser sends for a page of another site. */
import type { IncomingHttpHeaders } from 'node:http'

/** Why this request is another site's, or null. Programs other than browsers send neither header. */
export function crossSiteReason(method: string, headers: IncomingHttpHeaders): string | null {
  const site = headers['sec-fetch-site']
  if (isReading(method)) {
    // Other sites cannot read without CORS headers; this also keeps their pages from using up the places of the stream.
    return site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate' ? 'Sec-Fetch-Site is cross-site' : null
  }
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'Sec-Fetch-Site is not same-origin'
  const origin = headers.origin
  if (origin === undefined) return null
  return originHost(origin) === headers.host?.toLowerCase() ? null : 'Origin is not this server'
}

/** Like crossSiteReason, for requests with a cookie: a browser adds it to any request, so a change must name its origin. */
export function unprovenOriginReason(method: string, headers: IncomingHttpHeaders): string | null {
  const reason = crossSiteReason(method, headers)
  if (reason !== null || isReading(method)) return reason
  if (headers['sec-fetch-site'] === 'same-origin' || headers.origin !== undefined) return null
  return 'with a session, Origin or Sec-Fetch-Site must name this server'
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

function originHost(origin: string): string | null {
  return /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]?.toLowerCase() ?? null
}
