import { isIPv6 } from 'node:net'

export interface WebUiPlace {
  readonly 'alerts.dashboard_url': string | null
  readonly 'server.enabled': boolean
  readonly 'server.host': string
  readonly 'server.port': number
}

const EVERYWHERE = new Set(['0.0.0.0', '::', '[::]', '*'])

/** As configured, else the address listened on (the host's name for all addresses). null: no server, or its port is not known. */
export function webUiUrl(values: WebUiPlace, hostname: string): string | null {
  const configured = values['alerts.dashboard_url']
  if (configured !== null) return withoutExtras(configured)
  const { 'server.enabled': isServed, 'server.host': host, 'server.port': port } = values
  if (!isServed || port === 0) return null
  const name = EVERYWHERE.has(host) ? hostname : host
  const url = `http://${isIPv6(name) ? `[${name}]` : name}:${port}`
  return URL.canParse(url) ? url : null
}

/** A name and password, a query or a fragment have no place in a link that others get. */
function withoutExtras(address: string): string {
  const url = new URL(address)
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`
}
