/** Keeps secrets out of everything that is shown: answers, reasons, errors, and the printed configuration. */
import { readFileSync } from 'node:fs'

export const MASK = '********'
const REFERENCE = /^(env|file):(.+)$/s

/** `env:NAME` and `file:PATH` stand for a value that is kept elsewhere. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text)
}

/** Options in which such a text is literal. */
const VERBATIM = new Set(['command', 'template'])

/** Options with every reference replaced by its value. */
export function resolveReferences(value: unknown, env: Readonly<Record<string, string | undefined>>, path: string): unknown {
  if (Array.isArray(value)) return value.map((item, index) => resolveReferences(item, env, `${path}[${index}]`))
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, VERBATIM.has(key) ? item : resolveReferences(item, env, `${path}.${key}`)]),
    )
  const match = typeof value === 'string' ? REFERENCE.exec(value) : null
  if (!match) return value
  const [, where, name = ''] = match
  return where === 'env' ? fromVariable(name, env, path) : fromFile(name, path)
}

function fromVariable(name: string, env: Readonly<Record<string, string | undefined>>, path: string): string {
  const found = env[name]
  if (found === undefined || found === '') throw new Error(`${path}: the variable ${name} is not set; it must hold the value`)
  return found
}

function fromFile(name: string, path: string): string {
  try {
    return readFileSync(name, 'utf8').trim()
  } catch (cause) {
    throw new Error(`${path}: the file ${name} cannot be read (${(cause as NodeJS.ErrnoException).code}); it must hold the value`, {
      cause,
    })
  }
}

const SECRET_NAME = /token|password|passphrase|secret|key|url|credential|authorization|cookie/i

/** A copy that may be shown: secrets are masked, an address keeps only its host, a command only its program. */
export function maskSecrets(value: unknown, name = '', inHeaders = false): unknown {
  if (value === null || value === undefined || typeof value === 'boolean') return value
  if (Array.isArray(value))
    return value.map((item, index) =>
      name === 'command' && index > 0 ? MASK : maskSecrets(item, name === 'command' ? '' : name, inHeaders),
    )
  if (typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskSecrets(item, key, inHeaders || name === 'headers')]))
  if (typeof value === 'string' && isReference(value)) return value
  if (typeof value === 'string' && /^https?:\/\//i.test(value)) return maskedUrl(value)
  return inHeaders || SECRET_NAME.test(name) ? MASK : value
}

function maskedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url) return MASK
  const isBare = url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  return isBare ? text : `${url.protocol}//${url.host}/${MASK}`
}

export type Redact = (text: string) => string

/** Removes the given secrets from a text, in every encoding a server may return them in; the rest stays readable. */
export function redactor(secrets: readonly (string | null | undefined)[]): Redact {
  const all = new Set<string>()
  for (const secret of secrets) {
    // Shorter ones would blank out half of every answer, and are not secret anyway.
    if (secret === null || secret === undefined || secret.length < 4) continue
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64'), JSON.stringify(secret).slice(1, -1)])
      all.add(form)
  }
  const longestFirst = [...all].sort((a, b) => b.length - a.length)
  return (text) => longestFirst.reduce((masked, secret) => masked.replaceAll(secret, MASK), text)
}

/** The secret parts of an address: all of it, its path and query, and what is before the @. */
export function secretsOfUrl(text: string): string[] {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url) return [text]
  const parts = [
    text,
    url.href,
    url.pathname + url.search,
    ...url.pathname.split('/'),
    ...url.searchParams.values(),
    url.username,
    url.password,
  ]
  return parts.filter((part) => part.length >= 8 || part === url.password)
}
