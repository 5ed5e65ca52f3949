/** Talks to an agent over HTTP, for what sends: `run`, `import` and the callback. What goes wrong is a value. */
import { readFileSync } from 'node:fs'
import { toJson } from '../core/json-text.ts'

export const DEFAULT_URL = 'http://127.0.0.1:4780'

export interface Answer {
  /** 0: nobody answered; `message` says why. */
  readonly status: number
  readonly code: string | null
  readonly message: string
  readonly body: unknown
}

export class AgentLink {
  readonly url: string
  readonly #token: string | null
  readonly #limitMs: number

  constructor(url: string, token: string | null, limitMs = 5000) {
    this.url = url.replace(/\/+$/, '')
    this.#token = token
    this.#limitMs = limitMs
  }

  get(path: string, limitMs = this.#limitMs): Promise<Answer> {
    return this.#ask('GET', path, undefined, {}, limitMs)
  }

  post(path: string, body: unknown, limitMs = this.#limitMs): Promise<Answer> {
    return this.#ask('POST', path, toJson(body), { 'content-type': 'application/json' }, limitMs)
  }

  postLines(path: string, lines: readonly string[], limitMs = this.#limitMs): Promise<Answer> {
    return this.#ask('POST', path, `${lines.join('\n')}\n`, { 'content-type': 'application/x-ndjson' }, limitMs)
  }

  async #ask(
    method: string,
    path: string,
    body: string | undefined,
    headers: Readonly<Record<string, string>>,
    limitMs: number,
  ): Promise<Answer> {
    try {
      const answer = await fetch(this.url + path, {
        method,
        headers: this.#token === null ? headers : { ...headers, authorization: `Bearer ${this.#token}` },
        redirect: 'manual',
        signal: AbortSignal.timeout(limitMs),
        ...(body === undefined ? {} : { body }),
      })
      const value = jsonOf(await answer.text())
      const error = (value as { error?: { code?: unknown; message?: unknown } } | null)?.error
      const message = typeof error?.message === 'string' ? error.message : `status ${answer.status}`
      return { status: answer.status, code: typeof error?.code === 'string' ? error.code : null, message, body: value }
    } catch (error) {
      const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
      return { status: 0, code: null, message: cause?.code ?? cause?.message ?? message, body: null }
    }
  }
}

/** As the environment says that `gpuwarden run` and people set. */
export function tokenFromEnvironment(env: NodeJS.ProcessEnv): string | null {
  if (env.GPUWARDEN_TOKEN) return env.GPUWARDEN_TOKEN.trim()
  const file = env.GPUWARDEN_TOKEN_FILE
  if (!file) return null
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch {
    // The agent then answers 401, which is what gets reported.
    return null
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
