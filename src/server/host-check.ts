/** Protection against DNS rebinding: the server answers only to its own names. */
import { isIP } from 'node:net'

export interface HostCheckOptions {
  readonly boundHost: string
  readonly hostname: string
  readonly allowedHosts: readonly string[]
}

/** 127.0.0.0/8, ::1 and localhost. */
export function isLoopback(host: string): boolean {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

export function createHostCheck({ boundHost, hostname, allowedHosts }: HostCheckOptions): (header: string | undefined) => boolean {
  const own = hostname.toLowerCase()
  const names = new Set(['localhost', '127.0.0.1', '::1', bare(boundHost), own, own.split('.', 1)[0] ?? own])
  const suffixes: string[] = []
  for (const entry of allowedHosts) {
    if (entry.startsWith('.')) suffixes.push(entry.toLowerCase())
    else names.add(bare(entry))
  }
  // Rebinding needs a name. An address in the Host header was typed by a person or a scraper, and from outside a token is needed anyway.
  const anyAddress = !isLoopback(boundHost)
  return (header) => {
    const name = hostOf(header)
    if (name === null) return false
    return (
      names.has(name) || (anyAddress && isIP(name) !== 0) || suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length)
    )
  }
}

/** The host of a Host header, in lower case, without port and brackets; null when there is none. */
export function hostOf(header: string | undefined): string | null {
  const match = header === undefined ? null : /^(\[[0-9a-fA-F:.]+\]|[^:[\]/@\s]+)(?::\d{1,5})?$/.exec(header)
  return match?.[1] === undefined ? null : bare(match[1])
}

function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
}
