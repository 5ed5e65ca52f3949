import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Running, startServer, TOKEN, write } from './pretend-agent.contract.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** fetch does not let anyone choose the Host header. */
function ask(port: number, path: string, headers: Record<string, string> = {}, method = 'GET', body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, path, headers, method, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Everything that comes back for these bytes until the connection closes. */
function raw(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes))
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
  })
}

const code = ({ body }: Answer) => (JSON.parse(body) as { error: { code: string } }).error.code

describe('without a token', () => {
  let running: Running
  beforeAll(async () => {
    running = await startServer({ routes: [write] })
  })
  afterAll(() => running.server.close())

  it('refuses foreign hosts on every path', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/api/v1/gpus', '/api/v1/stream', '/', '/nope']) {
      for (const host of ['evil.com', 'evil.com:4780', 'localhost.evil.com']) {
        const answer = await ask(running.port, path, { host })
        expect(answer.status).toBe(403)
        expect(code(answer)).toBe('forbidden_host')
      }
      expect((await ask(running.port, '/healthz', { host: `PRETEND:${running.port}` })).status).toBe(200)
    }
    expect((await ask(running.port, '/healthz', { host: 'a b/c' })).status).toBe(400)
    expect(await raw(running.port, 'GET /healthz HTTP/1.0\r\n\r\n')).toContain('403')
  })

  it('refuses what pages of other sites send', async () => {
    const json = { 'content-type': 'application/json' }
    const post = (headers: Record<string, string>) => ask(running.port, '/api/v1/write', { ...json, ...headers }, 'POST', '{}')
    expect((await post({})).body).toBe('"done"')
    expect((await post({ origin: `http://localhost:${running.port}`, host: `localhost:${running.port}` })).status).toBe(200)
    for (const headers of [
      { origin: 'http://evil.com' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const answer = await post(headers)
      expect(answer.status).toBe(403)
      expect(code(answer)).toBe('cross_site')
    }
    const stolen = await ask(running.port, '/api/v1/stream', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })
    expect(code(stolen)).toBe('cross_site')
  })

  it('refuses large bodies, declared or not, and large headers', async () => {
    const json = { 'content-type': 'application/json' }
    const large = JSON.stringify('x'.repeat(1024 * 1024))
    const declared = await ask(running.port, '/api/v1/write', { ...json, 'content-length': String(large.length) }, 'POST', large)
    expect([declared.status, code(declared)]).toEqual([413, 'body_too_large'])
    const chunked = await ask(running.port, '/api/v1/write', { ...json, 'transfer-encoding': 'chunked' }, 'POST', large)
    expect([chunked.status, code(chunked)]).toEqual([413, 'body_too_large'])
    expect(chunked.headers.connection).toBe('close')
    expect(await raw(running.port, `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`)).toContain('431')
    expect(await raw(running.port, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).toContain('431')
  })

  it('does not wait for a large body to come', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(running.port, '127.0.0.1')
      socket.write('POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n')
      socket.once('data', (chunk) => {
        resolve(chunk.toString())
        socket.destroy()
      })
      socket.on('error', reject)
    })
    expect(answer).toContain('HTTP/1.1 413')
  })

  it('cuts off who goes on sending after the answer', async () => {
    const began = performance.now()
    const answer = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(running.port, '127.0.0.1')
      const more = setInterval(() => socket.write('x'.repeat(1000)), 50)
      socket.write('POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n')
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('error', () => undefined)
      socket.on('close', () => {
        clearInterval(more)
        resolve(text)
      })
    })
    expect(answer).toContain('HTTP/1.1 404')
    expect(performance.now() - began).toBeGreaterThan(400)
  })

  it('outlives garbage', async () => {
    const ok = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const garbage: (string | Buffer)[] = [
      Buffer.from(Array.from({ length: 4096 }, (_, n) => (n * 7919) % 256)),
      `${ok}${ok}\0\0\0garbage\r\n\r\n`,
      'POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"cut',
      'CONNECT evil.com:443 HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
      'TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'GET http://evil.com/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'GET /%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'GET /api/v1/gpus/%E0%A4%A HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'GET /\\..\\x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    ]
    for (const bytes of garbage) await raw(running.port, bytes)
    const pipelined = await raw(running.port, `${ok}${ok}GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    expect(pipelined.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
    expect(pipelined).toContain('HTTP/1.1 404')
    expect((await ask(running.port, '/healthz')).status).toBe(200)
    expect(running.log.lines.filter(({ level }) => level === 'error')).toEqual([])
  })
})

describe('with a token', () => {
  let running: Running
  beforeAll(async () => {
    running = await startServer({ routes: [write] }, { 'server.token': TOKEN })
  })
  afterAll(() => running.server.close())

  it('asks for it everywhere except at the probes, from loopback too', async () => {
    for (const path of ['/', '/metrics', '/api/v1/gpus', '/api/v1/stream', '/openapi.json', '/nope']) {
      const answer = await ask(running.port, path)
      expect([answer.status, code(answer)], path).toEqual([401, 'missing_token'])
      expect(answer.headers['www-authenticate']).toContain('Bearer')
    }
    expect((await ask(running.port, '/healthz')).status).toBe(200)
    expect((await ask(running.port, '/readyz')).status).toBe(200)
    expect((await ask(running.port, '/api/v1/gpus', { authorization: `Bearer ${TOKEN}` })).status).toBe(200)
    const { port } = await running.server.metricsListen(0)
    expect((await ask(port, '/metrics')).status).toBe(401)
    expect((await ask(port, '/healthz')).status).toBe(200)
  })

  it('does not take it from the URL, and never repeats or logs it', async () => {
    const answer = await ask(running.port, `/api/v1/gpus?token=${TOKEN}`)
    expect(answer.status).toBe(401)
    const wrong = await ask(running.port, '/api/v1/gpus', { authorization: 'Bearer not-the-secret' })
    expect(wrong.status).toBe(401)
    const said = JSON.stringify([answer, wrong, running.log.lines])
    expect(said).not.toContain(TOKEN)
    expect(said).not.toContain('not-the-secret')
  })

  it('slows down who guesses', async () => {
    const own = await startServer({}, { 'server.token': TOKEN })
    const statuses: number[] = []
    for (let n = 0; n < 15; n++) statuses.push((await ask(own.port, '/api/v1/gpus', { authorization: `Bearer guess-${n}` })).status)
    expect(statuses).toEqual([...Array<number>(10).fill(401), ...Array<number>(5).fill(429)])
    const last = await ask(own.port, '/api/v1/gpus', { authorization: 'Bearer guess' })
    expect([last.status, code(last), last.headers.connection]).toEqual([429, 'too_many_attempts', 'close'])
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0)
    expect((await ask(own.port, '/api/v1/gpus', { authorization: `Bearer ${TOKEN}` })).status).toBe(200)
    expect((await ask(own.port, '/healthz')).status).toBe(200)
    await own.server.close()
  })
})

describe('on all addresses', () => {
  it('does not start without a token', async () => {
    await expect(startServer({}, { 'server.host': '0.0.0.0' })).rejects.toThrow(/server\.host is 0\.0\.0\.0.*--token-file/)
  })

  it('starts with a token file, which it makes', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'gpuwarden-server-'))
    const file = join(dir, 'token')
    const running = await startServer({}, { 'server.host': '0.0.0.0', 'server.token_file': file })
    expect(running.url).toBe(`http://127.0.0.1:${running.port}`)
    const token = (await readFile(file, 'utf8')).trim()
    expect((await ask(running.port, '/api/v1/gpus', { host: '10.9.8.7:1', authorization: `Bearer ${token}` })).status).toBe(200)
    expect((await ask(running.port, '/api/v1/gpus', { host: '10.9.8.7:1' })).status).toBe(401)
    await running.server.close()
    await rm(dir, { recursive: true })
  })
})
