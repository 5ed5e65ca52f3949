import { createServer as createTcpServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { route } from '../core/route.ts'
import { ERRORS } from '../core/route-errors.ts'
import { finding, NOW, type Running, settingsWith, sourceHealth, startServer } from './pretend-agent.contract.ts'
import { SCHEMAS } from './schemas.ts'

const EXAMPLES: Readonly<Record<string, string>> = {
  '/api/v1/gpus/:label': '/api/v1/gpus/1',
  '/api/v1/history': '/api/v1/history?gpu=0&field=utilizationRatio',
  '/api/v1/host/history': '/api/v1/host/history?field=cpuRatio',
}

let running: Running
beforeAll(async () => {
  running = await startServer({ extraHealth: () => ({ store: { bytes: 12 } }) })
})
afterAll(() => running.server.close())

const getJson = async (path: string) => {
  const response = await fetch(running.url + path)
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, never> & { error: { code: string; message: string; hint: string } },
  }
}

describe('the routes', () => {
  it('answer what their schemas say', async () => {
    const checked: string[] = []
    const reading = running.server.routes.filter(({ method }) => method === 'GET')
    for (const { path, answer, answerType } of reading) {
      if (answerType === 'text/event-stream') continue
      const response = await fetch(running.url + (EXAMPLES[path] ?? path))
      expect(response.status, path).toBe(200)
      expect(response.headers.get('content-type'), path).toContain(answerType ?? 'application/json')
      answer.parse(answerType ? await response.text() : await response.json())
      checked.push(path)
    }
    expect(checked).toHaveLength(reading.length - 1)
  })

  it('refuse a schema that an answer does not fit', () => {
    expect(SCHEMAS.Findings.safeParse({ at: NOW, findings: [{ ...finding(null), surplus: 1 }] }).success).toBe(false)
  })

  it('give one GPU by label and by id, and 404 for others', async () => {
    expect((await getJson('/api/v1/gpus/1')).body.info).toMatchObject({ index: 1 })
    expect((await getJson('/api/v1/gpus/GPU-0000-0')).body.info).toMatchObject({ index: 0 })
    const { status, body } = await getJson('/api/v1/gpus/7')
    expect(status).toBe(404)
    expect(body.error).toEqual({ code: 'unknown_gpu', message: 'No GPU has the label, index or id "7".', hint: 'There are: 0, 1.' })
  })

  it('say NaN in evidence as a string, not as unknown', async () => {
    const { body } = await getJson('/api/v1/findings')
    expect(body).toMatchObject({ findings: [{ evidence: { loss: 'NaN', none: null } }] })
  })

  it('include what other rooms say in the health, with ages', async () => {
    const { body } = await getJson('/api/v1/health')
    expect(body).toMatchObject({
      status: 'ok',
      rooms: { store: { bytes: 12 } },
      self: { residentBytes: 7e7 },
      stream: { clients: 0, maxClients: 64 },
    })
    expect(body).toMatchObject({ sources: [{ ageMs: 500 }] })
  })

  it('refuse parameters that they do not have, without repeating values', async () => {
    const { status, body } = await getJson('/api/v1/gpus?token=sesame&__proto__=x')
    expect(status).toBe(400)
    expect(body.error.code).toBe('unknown_parameter')
    expect(JSON.stringify(body)).not.toContain('sesame')
  })
})

describe('errors', () => {
  it('are JSON for unknown paths', async () => {
    for (const path of [
      '/nope',
      '/api/v1/',
      '/../../etc/passwd',
      '/%2e%2e/%2e%2e/etc/passwd',
      '/..%5c..%5cwindows',
      '/api/v1/gpus/..%2f..%2fetc%2fpasswd',
    ]) {
      const { status, body } = await getJson(path)
      expect(status, path).toBe(404)
      expect(['not_found', 'unknown_gpu'], path).toContain(body.error.code)
    }
  })

  it('are 405 with Allow for other methods', async () => {
    for (const method of ['POST', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await fetch(`${running.url}/api/v1/gpus`, { method })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('HEAD, GET')
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
      SCHEMAS.Error.parse(await response.json())
    }
  })

  it('answer HEAD like GET, without the body', async () => {
    const response = await fetch(`${running.url}/api/v1/gpus`, { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(0)
    expect(await response.text()).toBe('')
    const stream = await fetch(`${running.url}/api/v1/stream`, { method: 'HEAD' })
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
  })

  it('are 500 with the request id when a handler throws, and say nothing of the fault', async () => {
    const bad = route({ method: 'GET', path: '/bad', summary: 'Throws', answer: z.null(), handler: () => JSON.parse('{secret') })
    const own = await startServer({ routes: [bad] })
    const response = await fetch(`${own.url}/bad`)
    const body = SCHEMAS.Error.parse(await response.json())
    expect(response.status).toBe(500)
    expect(body.error.code).toBe('internal')
    expect(JSON.stringify(body)).not.toContain('secret')
    const line = own.log.lines.find(({ level }) => level === 'warn')
    expect(line?.fields).toMatchObject({ status: 500, path: '/bad', request_id: response.headers.get('x-request-id') })
    expect(line?.fields.err).toBeInstanceOf(SyntaxError)
    await own.server.close()
  })
})

describe('readiness', () => {
  it('needs a source that is ok with a sample that is not overdue', async () => {
    const cases = [
      { sources: [], reason: 'no source has reported yet' },
      { sources: [sourceHealth({ lastSampleAt: null })], reason: 'nvidia has not delivered a sample yet' },
      { sources: [sourceHealth({ lastSampleAt: NOW - 7000 })], reason: 'the last sample of nvidia is 7 s old, expected at most 6 s' },
      {
        sources: [sourceHealth({ state: 'not_responding', message: 'the driver does not answer' })],
        reason: 'nvidia has been not_responding since 2025-10-09T08:53:10.000Z: the driver does not answer',
      },
    ]
    for (const { sources, reason } of cases) {
      running.agent.sources = sources
      const { status, body } = await getJson('/readyz')
      expect(status).toBe(503)
      expect(body).toEqual({ status: 'not_ready', reasons: [reason] })
      expect((await getJson('/healthz')).status).toBe(200)
      expect((await getJson('/api/v1/health')).body.status).toBe('degraded')
    }
    running.agent.sources = [sourceHealth({ state: 'crashed' }), sourceHealth({ source: 'host' })]
    expect((await getJson('/readyz')).status).toBe(503)
    running.agent.sources = [sourceHealth({ state: 'crashed' }), sourceHealth({ source: 'amd' })]
    const partly = await getJson('/readyz')
    expect([partly.status, partly.body]).toEqual([
      200,
      { status: 'ready', reasons: [expect.stringMatching(/^nvidia has been crashed since /)] },
    ])
    running.agent.sources = [sourceHealth()]
    expect((await getJson('/readyz')).body).toEqual({ status: 'ready', reasons: [] })
    expect(running.log.lines.filter(({ level }) => level === 'warn')).toEqual([])
  })
})

describe('/metrics', () => {
  it('negotiates OpenMetrics', async () => {
    const prometheus = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1'
    const open = await fetch(`${running.url}/metrics`, { headers: { accept: prometheus } })
    expect(open.headers.get('content-type')).toContain('application/openmetrics-text')
    expect(await open.text()).toContain('openmetrics')
    const plain = await fetch(`${running.url}/metrics`, { headers: { accept: '*/*' } })
    expect(plain.headers.get('content-type')).toContain('text/plain; version=0.0.4')
  })

  it('has a second port that serves nothing else', async () => {
    const { url } = await running.server.metricsListen(0)
    expect((await fetch(`${url}/metrics`)).status).toBe(200)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    for (const path of ['/', '/readyz', '/api/v1/gpus', '/openapi.json']) expect((await fetch(url + path)).status).toBe(404)
  })
})

describe('/openapi.json', () => {
  it('has every route, and every reference in it leads somewhere', async () => {
    const { body } = await getJson('/openapi.json')
    const document = body as unknown as { paths: Record<string, Record<string, { responses: object }>>; components: { schemas: object } }
    for (const { method, path } of running.server.routes) {
      expect(document.paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()], path).toBeDefined()
    }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '')
    expect(references.length).toBeGreaterThan(20)
    for (const name of references) expect(document.components.schemas).toHaveProperty([name])
    expect(JSON.stringify(document)).not.toContain('"additionalProperties":false')
    expect(document.paths['/api/v1/history']?.get?.responses).toHaveProperty('400')
  })
})

describe('routes of other rooms', () => {
  const steps = route({
    method: 'POST',
    path: '/api/v1/steps',
    summary: 'Takes steps',
    body: z.strictObject({ steps: z.array(z.number()) }),
    bodyLimitBytes: 100,
    answer: z.strictObject({ taken: z.number() }),
    errors: ['unknown_run'],
    handler: ({ body, refuse }) => (body.steps.length === 0 ? refuse('unknown_run', 'No such run.') : { taken: body.steps.length }),
  })
  const lines = route({
    method: 'POST',
    path: '/api/v1/lines',
    summary: 'Takes text',
    body: z.string(),
    bodyAs: 'text',
    answer: z.number(),
    handler: ({ body }) => body.length,
  })
  const json = { 'content-type': 'application/json' }
  let own: Running
  beforeAll(async () => {
    own = await startServer({ routes: [steps, lines] })
  })
  afterAll(() => own.server.close())
  const post = async (path: string, body: string, headers: Record<string, string> = json) => {
    const response = await fetch(own.url + path, { method: 'POST', headers, body })
    return { status: response.status, body: await response.json() }
  }

  it('are served and described', async () => {
    expect(await post('/api/v1/steps', '{"steps":[1,2]}')).toEqual({ status: 200, body: { taken: 2 } })
    expect(await post('/api/v1/lines', 'äb', { 'content-type': 'text/plain' })).toEqual({ status: 200, body: 2 })
    const document = (await (await fetch(`${own.url}/openapi.json`)).json()) as { components: { schemas: Record<string, unknown> } }
    expect(document.components.schemas).toHaveProperty('postApiV1StepsBody')
  })

  it('refuse bodies that do not fit, with what is wrong', async () => {
    const cases: readonly [string, Record<string, string>, keyof typeof ERRORS][] = [
      ['{"steps":[]}', json, 'unknown_run'],
      ['{"steps":["x"]}', json, 'invalid_body'],
      ['{', json, 'invalid_body'],
      ['{"steps":[1]}', { 'content-type': 'text/plain' }, 'unsupported_media_type'],
      ['{"steps":[1]}', { ...json, 'content-encoding': 'gzip' }, 'unsupported_media_type'],
      [`{"steps":[${'1,'.repeat(200)}1]}`, json, 'body_too_large'],
    ]
    for (const [body, headers, code] of cases) {
      const answer = await post('/api/v1/steps', body, headers)
      expect(answer.status).toBe(ERRORS[code].status)
      expect(answer.body).toMatchObject({ error: { code } })
    }
  })

  it('name the other methods of a path', async () => {
    const response = await fetch(`${own.url}/api/v1/steps`)
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST')
  })
})

describe('the page', () => {
  it('lists the routes while there is no web UI', async () => {
    const response = await fetch(running.url)
    expect(await response.text()).toContain('<a href="/api/v1/gpus">GET /api/v1/gpus</a>')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  it('is the web UI when its files are given, from their table alone', async () => {
    const asked: string[] = []
    const files = new Map([
      ['/', { body: '<p>dash</p>', type: 'text/html', cache: 'no-cache' }],
      ['/a.js', { body: Buffer.from('1'), type: 'text/javascript', cache: 'public, max-age=31536000, immutable' }],
    ])
    const own = await startServer({
      assets: (path) => {
        asked.push(path)
        return files.get(path) ?? null
      },
    })
    expect(await (await fetch(own.url)).text()).toBe('<p>dash</p>')
    const script = await fetch(`${own.url}/a.js?v=1`)
    expect(script.headers.get('cache-control')).toContain('immutable')
    expect(script.headers.get('content-security-policy')).toContain("script-src 'self'")
    expect((await fetch(`${own.url}/b.js`)).status).toBe(404)
    expect((await fetch(`${own.url}/a.js`, { method: 'POST' })).status).toBe(404)
    expect(asked).toEqual(['/', '/a.js', '/b.js'])
    await own.server.close()
  })
})

describe('answers', () => {
  it('carry the headers that keep browsers safe', async () => {
    const { headers } = await getJson('/api/v1/gpus')
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  it('are compressed when large and wanted', async () => {
    const at = async (path: string, encoding: string) => {
      const response = await fetch(running.url + path, { headers: { 'accept-encoding': encoding } })
      await response.json()
      return response.headers
    }
    expect((await at('/api/v1/gpus', 'gzip')).get('content-encoding')).toBe('gzip')
    expect((await at('/api/v1/gpus', 'deflate, gzip;q=0')).get('content-encoding')).toBe('deflate')
    expect((await at('/api/v1/gpus', 'identity')).get('content-encoding')).toBeNull()
    expect((await at('/api/v1/gpus', 'identity')).get('vary')).toBe('Accept-Encoding')
    expect((await at('/healthz', 'gzip')).get('content-encoding')).toBeNull()
  })

  it('go on with the trace of the caller', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
    const response = await fetch(`${running.url}/healthz?secret=1`, { headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } })
    const [, ownTrace, span, flags] = (response.headers.get('traceparent') ?? '').split('-')
    expect([ownTrace, flags]).toEqual([traceId, '01'])
    expect(span).not.toBe('00f067aa0ba902b7')
    expect(response.headers.get('x-request-id')).toBe(span)
    const line = running.log.lines.find(({ fields }) => fields.request_id === span)
    expect(line).toMatchObject({ level: 'debug', fields: { trace_id: traceId, method: 'GET', path: '/healthz', status: 200 } })
    expect(JSON.stringify(running.log.lines)).not.toContain('secret=')
    const other = await fetch(`${running.url}/healthz`, { headers: { traceparent: 'garbage' } })
    expect(other.headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  })
})

describe('listening', () => {
  it('names the port that is taken and what to do', async () => {
    const blocker = createTcpServer()
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve))
    const port = (blocker.address() as { port: number }).port
    const failure = await startServer({}, { 'server.port': port }).then(
      () => null,
      (error: Error) => error,
    )
    expect(failure?.message).toContain(`Port ${port} on 127.0.0.1 is taken`)
    expect(failure?.message).toContain('--port')
    expect(failure?.cause).toMatchObject({ code: 'EADDRINUSE' })
    const metrics = await running.server.metricsListen(port).catch((error: Error) => error.message)
    expect(metrics).toContain('--prometheus-port')
    await new Promise((resolve) => blocker.close(resolve))
  })

  it('says when an address is not of this machine', async () => {
    const settings = settingsWith({ 'server.host': '192.0.2.1', 'server.token': 'long enough'.replace(' ', '-') })
    await expect(startServer({ settings })).rejects.toThrow('192.0.2.1 is not an address of this machine')
  })

  it('closes in time although a connection stays open, and twice', async () => {
    const own = await startServer()
    await fetch(`${own.url}/healthz`, { headers: { connection: 'keep-alive' } })
    await own.server.close()
    await own.server.close()
    await expect(fetch(`${own.url}/healthz`)).rejects.toThrow()
  })
})
