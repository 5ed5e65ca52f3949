/** Asks the agent that runs on this machine (or where --host and --port say) over its HTTP API. */
import { readFileSync, statSync } from 'node:fs'
import type { Config, ConfigValues } from '../agent/config.ts'
import { isAgentOfOurs } from '../core/agent-file.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { printable } from '../core/format.ts'

export type AgentSettings = Pick<ConfigValues, 'server.host' | 'server.port' | 'server.token' | 'server.token_file'>

const TIME_LIMIT_MS = 10_000

/** Nothing answers there. */
export class NoAgent extends Failure {}

export class AgentClient {
  readonly url: string
  readonly #token: string | null
  /** There is a token, and nothing that proves who would get it. */
  readonly #isWithheld: boolean

  /** An address that the person named gets the token; one that was assumed only when it is an agent of ours. */
  constructor(settings: AgentSettings, isNamed = false) {
    const port = settings['server.port']
    if (port === 0) throw new Failure('--port: expected the port of the running agent; got 0', { exitCode: EXIT.usage })
    this.url = `http://${reachable(settings['server.host'])}:${port}`
    const token = tokenOf(settings)
    this.#isWithheld = token !== null && !isNamed && !mayHaveToken(settings)
    this.#token = this.#isWithheld ? null : token
  }

  static of({ values, origins }: Config): AgentClient {
    return new AgentClient(values, origins['server.port'].from === 'flag' || origins['server.host'].from === 'flag')
  }

  /** For those who speak to it in another way, such as listening to its stream. */
  get address(): { readonly url: string; readonly token: string | null } {
    return { url: this.url, token: this.#token }
  }

  get<T>(path: string): Promise<T> {
    return this.#ask('GET', path, undefined, TIME_LIMIT_MS)
  }

  post<T>(path: string, body: unknown, limitMs = TIME_LIMIT_MS): Promise<T> {
    return this.#ask('POST', path, body, limitMs)
  }

  delete<T>(path: string): Promise<T> {
    return this.#ask('DELETE', path, undefined, TIME_LIMIT_MS)
  }

  async #ask<T>(method: string, path: string, body: unknown, limitMs: number): Promise<T> {
    const headers: Record<string, string> = {}
    if (this.#token !== null) headers.authorization = `Bearer ${this.#token}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    let status: number
    let text: string
    try {
      const answer = await fetch(this.url + path, {
        method,
        headers,
        signal: AbortSignal.timeout(limitMs),
        redirect: 'manual',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      status = answer.status
      text = await answer.text()
    } catch (cause) {
      throw this.#silent(cause, limitMs)
    }
    const value = jsonOf(text)
    if (status === 200 && value !== undefined) return value as T
    throw this.#refused(status, value)
  }

  #silent(cause: unknown, limitMs: number): Failure {
    const { name, cause: inner, message } = cause as Error & { cause?: NodeJS.ErrnoException }
    if (name === 'TimeoutError')
      return new Failure(`the agent at ${this.url} did not answer within ${limitMs / 1000} s`, { exitCode: EXIT.checkFailed, cause })
    return new NoAgent(`no gpuwarden agent answers at ${this.url} (${inner?.code ?? inner?.message ?? message})`, {
      exitCode: EXIT.checkFailed,
      hint: 'Start one with "gpuwarden monitor", or say where it is with --host and --port.',
      cause,
    })
  }

  #refused(status: number, value: unknown): Failure {
    const error = (value as { error?: { code?: unknown; message?: unknown; hint?: unknown } } | undefined)?.error
    if (typeof error?.message !== 'string')
      return new Failure(`what answers at ${this.url} is no gpuwarden agent, or an older one (status ${status})`, {
        exitCode: EXIT.checkFailed,
        hint: 'Say where the agent is with --host and --port.',
      })
    const isToken = error.code === 'missing_token' || error.code === 'wrong_token'
    const missing = this.#isWithheld
      ? 'Nothing proves that it is an agent of yours, so it was not sent: name the address with --host or --port.'
      : 'Give it with --token-file or --token.'
    const hint = isToken ? missing : typeof error.hint === 'string' ? printable(error.hint) : null
    return new Failure(`the agent at ${this.url} says: ${printable(error.message)}`, { exitCode: EXIT.checkFailed, hint })
  }
}

/** An agent that listens on every address is reached on this machine's own. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

function tokenOf({ 'server.token': token, 'server.token_file': file }: AgentSettings): string | null {
  if (token !== null || file === null) return token
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw new Failure(`server.token_file ${file} cannot be read: ${(cause as Error).message}`, {
      exitCode: EXIT.usage,
      hint: 'It is readable for the user that runs the agent.',
      cause,
    })
  }
}

/** Whether what listens on the port is an agent of this user, of root, or of whoever owns the token anyway. */
export function mayHaveToken({ 'server.port': port, 'server.token_file': file }: AgentSettings): boolean {
  const owner = file === null ? null : (statSync(file, { throwIfNoEntry: false })?.uid ?? null)
  return isAgentOfOurs(port, owner)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
