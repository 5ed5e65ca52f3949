/** The client of an agent's HTTP API, for commands, screens and step senders. Small: without fetch. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { readBounded } from './bounded-body.ts'
import { EXIT, Failure } from './failure.ts'
import { printable } from './format.ts'

export const DEFAULT_URL = 'http://127.0.0.1:4780'

export interface AgentAddress {
  readonly url: string
  readonly token: string | null
  /** There is a token, but nothing proves who would get it: it is not sent. */
  readonly isTokenWithheld?: boolean
}

/** The result of a request as a value, for callers that must not stop. */
export interface Answer {
  /** 0: no answer, or not JSON. */
  readonly status: number
  /** An error code of the agent; `unreachable` or `late` without an answer; null: not an agent. */
  readonly code: string | null
  readonly message: string
  readonly hint: string | null
  /** undefined: not JSON. */
  readonly body: unknown
}

/** A refusal, or no answer. */
export class AgentFault extends Failure {
  readonly status: number
  readonly code: string | null
  /** Without the address. */
  readonly reason: string

  constructor({ status, code, message }: Answer, text: string, hint: string | null) {
    super(text, { exitCode: EXIT.checkFailed, hint })
    this.name = 'AgentFault'
    this.status = status
    this.code = code
    this.reason = message
  }
}

const USUAL_LIMIT_MS = 5000
const LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
const FIRST_WORDS = 60

const START_ONE = 'Start one with "gpuwarden monitor", or say where it is with --host and --port.'
const NAME_IT = 'Say where the agent is with --host and --port.'
const PROVE_IT = 'Nothing proves that it is an agent of yours, so it was not sent: name the address with --host or --port.'
const GIVE_TOKEN = 'Give it with --token-file or --token.'

interface Question {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly limitMs: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export class AgentClient {
  readonly url: string
  readonly #token: string | null
  readonly #isTokenWithheld: boolean
  readonly #limitMs: number

  constructor({ url, token, isTokenWithheld = false }: AgentAddress, limitMs = USUAL_LIMIT_MS) {
    this.url = url.replace(/\/+$/, '')
    this.#token = isTokenWithheld ? null : token
    this.#isTokenWithheld = isTokenWithheld
    this.#limitMs = limitMs
  }

  async get<T>(path: string, limitMs = this.#limitMs): Promise<T> {
    return this.#granted(await this.tryGet(path, limitMs))
  }

  async post<T>(path: string, body?: unknown, limitMs = this.#limitMs): Promise<T> {
    return this.#granted(await this.tryPost(path, body, limitMs))
  }

  async delete<T>(path: string): Promise<T> {
    return this.#granted(await this.#ask({ method: 'DELETE', path, limitMs: this.#limitMs }))
  }

  tryGet(path: string, limitMs = this.#limitMs): Promise<Answer> {
    return this.#ask({ method: 'GET', path, limitMs })
  }

  tryPost(path: string, body?: unknown, limitMs = this.#limitMs): Promise<Answer> {
    if (body === undefined) return this.#ask({ method: 'POST', path, limitMs })
    return this.#ask({ method: 'POST', path, limitMs, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  }

  tryPostLines(path: string, lines: readonly string[], limitMs = this.#limitMs): Promise<Answer> {
    const headers = { 'content-type': 'application/x-ndjson' }
    return this.#ask({ method: 'POST', path, limitMs, headers, body: `${lines.join('\n')}\n` })
  }

  /** A streamed answer: the limit is for its start. */
  async stream(path: string, headers: Readonly<Record<string, string>> = {}, limitMs = this.#limitMs): Promise<IncomingMessage> {
    const asked = this.#open({ method: 'GET', path, limitMs, headers })
    try {
      const answer = await asked.head
      return answer.statusCode === 200 ? answer : this.#granted(await readAnswer(answer))
    } catch (error) {
      throw error instanceof AgentFault ? error : this.#fault(silence(asked.lateness() ?? error))
    } finally {
      asked.release()
    }
  }

  /** Version of the agent there; null: none. The token is not sent. */
  async version(limitMs = this.#limitMs): Promise<string | null> {
    const { status, body } = await new AgentClient({ url: this.url, token: null }).tryGet('/healthz', limitMs)
    const told = body as { status?: unknown; name?: unknown; version?: unknown } | null | undefined
    return status === 200 && told?.status === 'ok' && told.name === 'gpuwarden' ? String(told.version ?? 'of unknown version') : null
  }

  async #ask(question: Question): Promise<Answer> {
    const asked = this.#open(question)
    try {
      return await readAnswer(await asked.head)
    } catch (error) {
      return silence(asked.lateness() ?? error)
    } finally {
      asked.release()
    }
  }

  #open({ method, path, limitMs, headers = {}, body }: Question) {
    let late: Late | null = null
    let timer: NodeJS.Timeout | undefined
    const head = new Promise<IncomingMessage>((resolve, reject) => {
      // Not imported: that loads fetch with it, 10 MB on Node.js 24.
      const { request } = process.getBuiltinModule(this.url.startsWith('https:') ? 'node:https' : 'node:http')
      const authorization = this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }
      // A new connection per request: the other side may close a kept one at the moment of reuse.
      const asked = request(this.url + path, { method, headers: { ...headers, ...authorization }, agent: false }, resolve)
      asked.on('error', reject)
      timer = setTimeout(() => {
        late = new Late(`no answer within ${limitMs / 1000} s`)
        asked.destroy(late)
      }, limitMs)
      asked.end(body)
    })
    return { head, lateness: () => late, release: () => clearTimeout(timer) }
  }

  #granted<T>(answer: Answer): T {
    if (answer.status === 200 && answer.body !== undefined) return answer.body as T
    throw this.#fault(answer)
  }

  #fault(answer: Answer): AgentFault {
    const { code, message, hint } = answer
    const say = (text: string, advice: string | null) => new AgentFault(answer, text, advice)
    if (code === 'late') return say(`the agent at ${this.url} did not answer: ${message}`, hint)
    if (code === 'unreachable') return say(`no gpuwarden agent answers at ${this.url} (${message})`, START_ONE)
    if (code === null) return say(`the server at ${this.url} is not a gpuwarden agent, or an older one (${message})`, NAME_IT)
    const isToken = code === 'missing_token' || code === 'wrong_token'
    return say(`the agent at ${this.url} says: ${message}`, isToken ? (this.#isTokenWithheld ? PROVE_IT : GIVE_TOKEN) : hint)
  }
}

class Late extends Error {}

function silence(error: unknown): Answer {
  const { message, code } = error as NodeJS.ErrnoException
  return error instanceof Late
    ? { status: 0, code: 'late', message, hint: null, body: undefined }
    : { status: 0, code: 'unreachable', message: code ?? message, hint: null, body: undefined }
}

/** Rejects when the connection ends early, or the answer is too large. */
async function readAnswer(answer: IncomingMessage): Promise<Answer> {
  const bytes = await readBounded(answer, LARGEST_ANSWER_BYTES)
  if (typeof bytes === 'string') {
    answer.destroy()
    throw new Error(bytes === 'cut_off' ? 'the connection was closed' : 'the answer is too large for an agent')
  }
  const text = bytes.toString()
  const status = answer.statusCode ?? 0
  const body = jsonOf(text)
  const error = (body as { error?: { code?: unknown; message?: unknown; hint?: unknown } } | null | undefined)?.error
  const { server } = answer.headers
  const sender = server === undefined ? '' : ` from ${printable(String(server)).slice(0, FIRST_WORDS)}`
  const stranger = `status ${status}${sender}${text === '' ? '' : `: ${JSON.stringify(printable(text.slice(0, FIRST_WORDS)))}`}`
  const isOurs = typeof error?.message === 'string'
  return {
    status: status === 200 && body === undefined ? 0 : status,
    code: isOurs ? String(error.code ?? 'unknown') : null,
    message: isOurs ? printable(String(error.message)) : stranger,
    hint: typeof error?.hint === 'string' ? printable(error.hint) : null,
    body,
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** From the environment, set by `gpuwarden run` or by the user. */
export function tokenFromEnvironment(env: NodeJS.ProcessEnv): string | null {
  if (env.GPUWARDEN_TOKEN) return env.GPUWARDEN_TOKEN.trim()
  return env.GPUWARDEN_TOKEN_FILE ? tokenIn(env.GPUWARDEN_TOKEN_FILE) : null
}

/** null where the file cannot be read: the agent then asks for a token, and that is reported. */
export function tokenIn(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null
    throw error
  }
}
