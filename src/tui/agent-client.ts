/** Questions to an agent over HTTP: small, without the weight of fetch. */
import type { IncomingMessage } from 'node:http'

export interface AgentAddress {
  /** `http://127.0.0.1:4780`, without a slash at the end. */
  readonly url: string
  readonly token: string | null
}

const LARGEST_ANSWER = 64 * 1024 * 1024

/** An answer that says no. */
export class AgentRefusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'AgentRefusal'
    this.status = status
  }
}

export interface Question {
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
  /** Posted as JSON; without it the question is a GET. */
  readonly body?: object
}

/** The response once its head is there; rejects on refusal, silence and lost connections. */
export function openAnswer(
  { url, token }: AgentAddress,
  path: string,
  { timeoutMs, headers = {}, body }: Question,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Not imported: that reads all that the module offers, fetch's machinery among it, which takes 10 MB on Node.js 24.
    const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
    const asked = request(
      url + path,
      {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
      },
      (answer) => {
        clearTimeout(timer)
        if (answer.statusCode === 200) {
          resolve(answer)
          return
        }
        void readAll(answer).then(
          (text) => reject(new AgentRefusal(answer.statusCode ?? 0, messageOf(text, answer.statusCode ?? 0))),
          (error: unknown) => reject(error),
        )
      },
    )
    const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
    asked.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

export async function askJson<T>(address: AgentAddress, path: string, timeoutMs: number): Promise<T> {
  return JSON.parse(await readAll(await openAnswer(address, path, { timeoutMs }))) as T
}

export async function postJson<T>(address: AgentAddress, path: string, body: object, timeoutMs: number): Promise<T> {
  return JSON.parse(await readAll(await openAnswer(address, path, { timeoutMs, body }))) as T
}

async function readAll(answer: IncomingMessage): Promise<string> {
  answer.setEncoding('utf8')
  let text = ''
  for await (const part of answer) {
    text += part
    if (text.length > LARGEST_ANSWER) throw new Error('the answer is larger than any of an agent')
  }
  return text
}

function messageOf(text: string, status: number): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } }
    if (typeof error?.message === 'string') return `${error.message} (${status})`
  } catch {
    // Not one of our errors: the status is all there is to say.
    return `it answered with status ${status}`
  }
  return `it answered with status ${status}`
}

/** True when an agent of ours serves there. */
export async function isAgent(address: AgentAddress, timeoutMs: number): Promise<boolean> {
  try {
    const answer = await askJson<{ status?: unknown; name?: unknown }>({ ...address, token: null }, '/healthz', timeoutMs)
    return answer.status === 'ok' && answer.name === 'gpuwarden'
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}
