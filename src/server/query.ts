/** The query string as an object for a schema: a string, or a list of strings for a repeated parameter. */
import type { z } from 'zod'
import type { ErrorCode } from '../core/route-errors.ts'

export type RawQuery = Readonly<Record<string, string | readonly string[]>>

export function parseQuery(url: string): RawQuery {
  const at = url.indexOf('?')
  if (at === -1) return {}
  const values = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    const before = values.get(name)
    values.set(name, before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value])
  }
  return Object.fromEntries(values)
}

export type QueryResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string }

/** Messages name parameters and never repeat values: somebody may have put a secret there. */
export function checkQuery(query: RawQuery, schema: z.ZodType | undefined): QueryResult {
  if (!schema) return { ok: true, value: query }
  const parsed = schema.safeParse(query)
  if (parsed.success) return { ok: true, value: parsed.data }
  const [issue] = parsed.error.issues
  const hint = 'See /openapi.json for the parameters of this route.'
  if (issue?.code === 'unrecognized_keys') {
    return { ok: false, code: 'unknown_parameter', message: `This route has no parameter ${issue.keys.map(quote).join(', ')}.`, hint }
  }
  const name = String(issue?.path[0] ?? 'query')
  if (!(name in query)) return { ok: false, code: 'missing_parameter', message: `The parameter ${quote(name)} is missing.`, hint }
  const message = Array.isArray(query[name])
    ? `The parameter ${quote(name)} was given ${query[name].length} times; give it once.`
    : `The parameter ${quote(name)} is not valid: ${issue?.message ?? 'not valid'}.`
  return { ok: false, code: 'invalid_parameter', message, hint }
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
