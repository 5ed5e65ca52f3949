/** Questions to the agent. Only the page's own host is ever asked. */
import { signal } from '@preact/signals'

/** The agent said no, in its own words. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string | null
  readonly waitSeconds: number | null

  constructor(status: number, code: string, message: string, hint: string | null, waitSeconds: number | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.hint = hint
    this.waitSeconds = waitSeconds
  }
}

export interface Session {
  readonly required: boolean
  readonly signedIn: boolean
  readonly canKill: boolean
  readonly hostname: string | null
  readonly version: string | null
}

export const session = signal<Session | null>(null)

export interface AskOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: unknown
  readonly signal?: AbortSignal
}

export type Query = Readonly<Record<string, string | number | null | undefined>>

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined) search.set(name, String(value))
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

/** The answer; throws a Refusal with the agent's words, or the browser's error when the agent cannot be reached. */
export async function ask<Answer>(path: string, query: Query = {}, options: AskOptions = {}): Promise<Answer> {
  const response = await fetch(address(path, query), {
    method: options.method ?? 'GET',
    credentials: 'same-origin',
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body), headers: { 'content-type': 'application/json' } }),
    ...(options.signal ? { signal: options.signal } : {}),
  })
  if (response.ok) return (await response.json()) as Answer
  const refusal = await refusalOf(response)
  // The session is over, or the token was changed: the login page takes over.
  if (response.status === 401 && session.value?.required) session.value = { ...session.value, signedIn: false }
  throw refusal
}

/** Sends a part of a file; throws as ask() does. */
export async function sendBytes<Answer>(path: string, query: Query, bytes: Blob, signal: AbortSignal): Promise<Answer> {
  const headers = { 'content-type': 'application/octet-stream' }
  const response = await fetch(address(path, query), { method: 'PUT', credentials: 'same-origin', body: bytes, headers, signal })
  if (response.ok) return (await response.json()) as Answer
  throw await refusalOf(response)
}

/** A file to keep; throws as ask() does. */
export async function askFile(path: string, query: Query = {}): Promise<Blob> {
  const response = await fetch(address(path, query), { credentials: 'same-origin' })
  if (response.ok) return response.blob()
  throw await refusalOf(response)
}

async function refusalOf(response: Response): Promise<Refusal> {
  const wait = Number(response.headers.get('retry-after') ?? Number.NaN)
  const waitSeconds = Number.isFinite(wait) ? wait : null
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string; hint: string | null } }
    return new Refusal(response.status, error.code, error.message, error.hint, waitSeconds)
  } catch {
    return new Refusal(response.status, 'unknown', `The agent answered with status ${response.status}.`, null, waitSeconds)
  }
}

export function inWords(error: unknown): string {
  if (error instanceof Refusal) return error.hint === null ? error.message : `${error.message} ${error.hint}`
  return 'The agent does not answer.'
}

export async function askSession(): Promise<void> {
  session.value = await ask<Session>('/api/v1/session')
}

export async function signIn(token: string): Promise<void> {
  await ask('/api/v1/session', {}, { method: 'POST', body: { token } })
  await askSession()
}

export async function signOut(): Promise<void> {
  await ask('/api/v1/session', {}, { method: 'DELETE' })
  await askSession()
}
