/** A request of which every header is ours to choose; fetch sets some of its own. */
import { type IncomingHttpHeaders, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

export interface Question {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

export function ask(port: number, path: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, path, headers, method, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

export function json<T = Record<string, unknown>>({ bytes }: Answer): T {
  return JSON.parse(bytes.toString()) as T
}

/** Status and, for a refusal, its code. */
export function outcome(answer: Answer): string {
  const { error } = json<{ error?: { code: string } }>(answer)
  return error ? `${answer.status} ${error.code}` : String(answer.status)
}
