/** The HTTP server of the built program: bodies, queries and the place where a stream is resumed. */
import { request } from 'node:http'
import { RunningAgent } from '../program.ts'
import type { FuzzReader } from './readers.ts'

interface Asked {
  readonly method: string
  readonly path: string
}

let agent: Promise<RunningAgent> | null = null
let routes: Promise<readonly Asked[]> | null = null

function theAgent(): Promise<RunningAgent> {
  agent ??= RunningAgent.start(['--source', 'demo'])
  return agent
}

/** Every route that the program documents. */
function theRoutes(): Promise<readonly Asked[]> {
  routes ??= theAgent().then(async (running) => {
    const { paths } = await running.get<{ paths: Record<string, object> }>('/openapi.json')
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
    )
  })
  return routes
}

/** A refusal is an answer; an internal error, or none at all, is not. */
async function ask(method: string, path: string, headers: Record<string, string>, body?: Buffer): Promise<void> {
  const { url } = await theAgent()
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(new URL(url).origin, { method, path, headers, agent: false, timeout: 10_000 }, (answer) => {
      answer.resume()
      // A stream never ends by itself.
      answer.destroy()
      resolve(answer.statusCode ?? 0)
    })
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer`)))
    sent.on('error', reject)
    sent.end(body)
  })
  if (status === 0 || status === 500 || status === 502) throw new Error(`${method} ${path} answered ${status}`)
}

const close = async () => (await agent)?.stop('SIGKILL')
/** In a path or header of HTTP only these can be. */
const printable = (bytes: Buffer) => bytes.toString('latin1').replace(/[^\x21-\x7e]/g, '~')
const chosen = <T>(list: readonly T[], byte: number | undefined): T => list[(byte ?? 0) % list.length] as T

export const serverReaders: readonly FuzzReader[] = [
  {
    name: 'http-bodies',
    // The first byte says which route.
    examples: [
      '{"id":"r1","name":"my run","gpus":[0],"started_at":1760000000000}',
      '{"seq":1,"rank":0,"step":1,"t":1760000000000,"loss":2.31}\n{"seq":2,"step":2,"loss":NaN}',
      '{"outcome":"success","message":"x","ended_at":1760000000000,"rank":0}',
      '{"matchers":[{"label":"detector","operator":"=~","value":"ther.*"}],"until":4000000000000,"comment":"c"}',
      '{"signal":"SIGTERM","startedAt":1759990000000}',
    ].flatMap((body) => ['\x00', '\x01', '\x02', '\x03', '\x04', '\x05', '\x06', '\x07'].map((route) => route + body)),
    async read(bytes) {
      const { method, path } = chosen(
        (await theRoutes()).filter((one) => one.method !== 'GET'),
        bytes[0],
      )
      const type = path.endsWith('/steps') ? 'application/x-ndjson' : 'application/json'
      await ask(method, path.replace(/\{[^}]*\}/g, 'r1'), { 'content-type': type }, bytes.subarray(1))
    },
    close,
  },
  {
    name: 'http-queries',
    examples: [
      '0?from=-1h&to=now&fields=loss,phase:data&rank=0',
      '1?gpu=0&step=10s&fields=utilizationRatio',
      '2?lines=100&level=warn',
      '3r1?view=1',
    ].flatMap((query) => Array.from({ length: 8 }, (_, index) => String.fromCharCode(index * 5) + query.slice(1))),
    async read(bytes) {
      const { path } = chosen(
        // The doctor starts a process for every question.
        (await theRoutes()).filter((one) => one.method === 'GET' && !/doctor|report/.test(one.path)),
        bytes[0],
      )
      const text = printable(bytes.subarray(1))
      const [name = '', ...query] = text.split('?')
      await ask('GET', `${path.replace(/\{[^}]*\}/g, name.replace(/[/#]/g, '') || 'r1')}?${query.join('?')}`, {})
    },
    close,
  },
  {
    name: 'stream-resume',
    examples: ['0123abcd-15', 'boot-0', '-1', '99999999999999999999'],
    async read(bytes) {
      await ask('GET', '/api/v1/stream', { 'last-event-id': printable(bytes).slice(0, 2000) })
      await ask('GET', `/api/v1/stream?lastEventId=${encodeURIComponent(printable(bytes)).slice(0, 2000)}`, {})
    },
    close,
  },
]
