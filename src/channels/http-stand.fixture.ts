/** A real HTTP server that behaves as told, for the channels that speak HTTP. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Behavior, Stand } from './channel.contract.ts'
import type { ChannelKind } from './channel-kind.ts'

export interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface HttpServer {
  readonly url: string
  readonly requests: Received[]
  answer: { status: number; body: string; headers?: Record<string, string> }
  behavior: Behavior
  close(): Promise<void>
}

export async function openHttpServer(behavior: Behavior = 'ok'): Promise<HttpServer> {
  const requests: Received[] = []
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      requests.push({ url: request.url ?? '', headers: request.headers, body })
      if (stand.behavior === 'hang') return
      if (stand.behavior === 'drop') return void request.socket.destroy()
      const echo = `${request.url} ${JSON.stringify(request.headers)} ${body.toString()}`
      const {
        status,
        body: text,
        headers,
      } = {
        ok: stand.answer,
        refuse: { status: 403, body: 'go away' },
        later: { status: 503, body: 'busy' },
        echo: { status: 400, body: echo },
        down: stand.answer,
      }[stand.behavior] as HttpServer['answer']
      response.writeHead(status, headers).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stand: HttpServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: { status: 200, body: 'thanks' },
    behavior,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return stand
}

/** `options` get the address of the server; `secrets` are what they hold. */
export function httpStand(kind: ChannelKind, options: (url: string) => object, secrets: readonly string[]) {
  return async (behavior: Behavior): Promise<Stand> => {
    const server = await openHttpServer(behavior)
    if (behavior === 'down') await server.close()
    const timeoutMs = behavior === 'hang' ? 400 : 20_000
    return {
      channel: kind.open('it', options(server.url), { env: {}, stateDir: '/nonexistent', timeoutMs }),
      secrets,
      says: '200: thanks',
      received: () => server.requests.map(({ url, headers, body }) => `${url} ${JSON.stringify(headers)}\n${body.toString()}`).join('\n'),
      close: server.close,
    }
  }
}
