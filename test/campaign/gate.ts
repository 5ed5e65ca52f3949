/** Stands between the SDK and the agent: a witness of what the agent acknowledged, and a network with faults. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { countStep, type StepCounts } from './ledger.ts'
import type { GateFault } from './schedule.ts'

const HTML = '<!doctype html><html><body>Please sign in to use this network.</body></html>'
const SLOW_MS = 2500

export class Gate {
  /** Where the agent is now; null while it is down. */
  agentUrl: string | null = null
  fault: GateFault | null = null
  readonly #server: Server
  readonly #acknowledged: StepCounts
  #port = 0

  private constructor(acknowledged: StepCounts) {
    this.#acknowledged = acknowledged
    this.#server = createServer((asked, answer) => void this.#take(asked, answer).catch(() => asked.socket.destroy()))
  }

  static async open(acknowledged: StepCounts): Promise<Gate> {
    const gate = new Gate(acknowledged)
    await gate.#listen(0)
    gate.#port = (gate.#server.address() as AddressInfo).port
    return gate
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async set(fault: GateFault | null): Promise<void> {
    const before = this.fault
    this.fault = fault
    // Whoever waits for an answer that will not come is let go when the network is repaired.
    if (before === 'hang' || before === 'mute') this.#server.closeAllConnections()
    if (fault === 'refuse') await this.close()
    else if (before === 'refuse') await this.#listen(this.#port)
  }

  close(): Promise<unknown> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(resolve))
  }

  #listen(port: number): Promise<void> {
    return new Promise((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
  }

  async #take(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of asked) parts.push(part as Buffer)
    const body = Buffer.concat(parts)
    const { fault } = this
    if (fault === 'hang') return
    if (fault === 'reset' || this.agentUrl === null) return void asked.socket.destroy()
    if (fault === 'busy') return void answer.writeHead(500).end('{}')
    if (fault === 'missing') return void answer.writeHead(404, { 'content-type': 'text/html' }).end(HTML)
    if (fault === 'html') return void answer.writeHead(200, { 'content-type': 'text/html' }).end(HTML)
    if (fault === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    const { status, headers, text } = await this.#ask(asked, body)
    if (status === 200) this.#witness(asked, body, JSON.parse(text.toString()) as { rejected?: { line: number }[] })
    if (fault === 'mute') return
    answer.writeHead(status, headers).end(text)
  }

  #ask(asked: IncomingMessage, body: Buffer): Promise<{ status: number; headers: Record<string, string>; text: Buffer }> {
    return new Promise((resolve, reject) => {
      const { host: _, ...headers } = asked.headers
      const sent = request(`${this.agentUrl}${asked.url}`, { method: asked.method ?? 'GET', headers, timeout: 20_000 }, (answer) => {
        const parts: Buffer[] = []
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('error', reject)
        answer.on('end', () => {
          const type = answer.headers['content-type'] ?? 'application/json'
          const wait = answer.headers['retry-after']
          resolve({
            status: answer.statusCode ?? 0,
            headers: { 'content-type': type, ...(wait ? { 'retry-after': wait } : {}) },
            text: Buffer.concat(parts),
          })
        })
      })
      sent.on('error', reject)
      sent.on('timeout', () => sent.destroy(new Error('the agent does not answer')))
      sent.end(body)
    })
  }

  #witness({ url = '', headers }: IncomingMessage, body: Buffer, { rejected = [] }: { rejected?: { line: number }[] }): void {
    const run = /^\/api\/v1\/runs\/([^/]+)\/steps$/.exec(url)?.[1]
    if (run === undefined) return
    const refused = new Set(rejected.map(({ line }) => line))
    const text = (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
    for (const [index, line] of text.split('\n').entries()) {
      const found = /"step":\s*(\d+).*"rank":\s*(\d+)/.exec(line)
      if (found && !refused.has(index + 1) && !this.#acknowledged.get(`${run} ${found[2]}`)?.has(Number(found[1])))
        countStep(this.#acknowledged, decodeURIComponent(run), Number(found[2]), Number(found[1]))
    }
  }
}
