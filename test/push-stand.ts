/** A receiver for pushes: a real HTTP server that keeps what it gets and answers as it is told. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type PushSettings, pushSettings } from '../src/push/settings.ts'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export class PushStand {
  readonly received: Received[] = []
  readonly url: string
  readonly #close: () => Promise<void>

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.#close = close
  }

  static async open(answer: (request: Received, stand: PushStand) => Answer): Promise<PushStand> {
    const server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const got = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts) }
        const { status, body, headers } = answer(got, stand)
        stand.received.push(got)
        response.writeHead(status, headers).end(body === undefined ? '' : JSON.stringify(body))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const stand = new PushStand(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return stand
  }

  close(): Promise<void> {
    return this.#close()
  }
}

/** The defaults, with some changed. */
export function settingsWith(changed: Partial<PushSettings>): PushSettings {
  const defaults = Object.fromEntries(Object.entries(pushSettings).map(([key, entry]) => [key, entry.default]))
  return { ...(defaults as unknown as PushSettings), ...changed }
}
