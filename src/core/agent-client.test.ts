import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AgentClient, AgentFault } from './agent-client.ts'

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const json = (status: number, value: unknown): RequestListener => {
  return (_request, response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part
  return text
}

async function faultOf(asked: Promise<unknown>): Promise<AgentFault> {
  const error = await asked.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof AgentFault)) throw new Error(`expected an AgentFault; got ${String(error)}`)
  return error
}

describe('AgentClient', () => {
  it('asks, posts, posts lines and deletes, with the token', async () => {
    const url = await serve(async (request, response) => {
      const { method, url: path, headers } = request
      const told = [method, path, headers.authorization, headers['content-type'], await bodyOf(request)]
      response.end(JSON.stringify(told))
    })
    const agent = new AgentClient({ url: `${url}/`, token: 't' })
    expect(agent.url).toBe(url)
    expect(await agent.get('/a?b=c')).toEqual(['GET', '/a?b=c', 'Bearer t', null, ''])
    expect(await agent.post('/a', { x: 'ü' })).toEqual(['POST', '/a', 'Bearer t', 'application/json', '{"x":"ü"}'])
    expect(await agent.post('/a')).toEqual(['POST', '/a', 'Bearer t', null, ''])
    expect(await agent.delete('/a')).toEqual(['DELETE', '/a', 'Bearer t', null, ''])
    expect((await agent.tryPostLines('/a', ['1', '2'])).body).toEqual(['POST', '/a', 'Bearer t', 'application/x-ndjson', '1\n2\n'])
  })

  it('sends no token that is withheld, and none to find out who is there', async () => {
    const seen: (string | undefined)[] = []
    const url = await serve((request, response) => {
      seen.push(request.headers.authorization)
      const isHealth = request.url === '/healthz'
      json(
        isHealth ? 200 : 401,
        isHealth
          ? { status: 'ok', name: 'gpuwarden', version: '1.2.3' }
          : { error: { code: 'missing_token', message: 'A token is needed.' } },
      )(request, response)
    })
    expect(await new AgentClient({ url, token: 't' }).version()).toBe('1.2.3')
    const withheld = await faultOf(new AgentClient({ url, token: 't', isTokenWithheld: true }).get('/api/v1/alerts'))
    expect(withheld).toMatchObject({ status: 401, reason: 'A token is needed.', hint: expect.stringContaining('was not sent') })
    expect((await faultOf(new AgentClient({ url, token: null }).get('/'))).hint).toBe('Give it with --token-file or --token.')
    expect(seen).toEqual([undefined, undefined, undefined])
  })

  it("passes on the agent's own words", async () => {
    const url = await serve(json(404, { error: { code: 'unknown_run', message: 'There is no run\u0007 x.', hint: 'Look again.' } }))
    const agent = new AgentClient({ url, token: null })
    expect(await agent.tryGet('/')).toMatchObject({ status: 404, code: 'unknown_run', hint: 'Look again.' })
    const fault = await faultOf(agent.get('/'))
    expect(fault.message).toMatch(/^the agent at http:\/\/127\.0\.0\.1:\d+ says: There is no run/)
    expect(fault.message).not.toContain('\u0007')
    expect(fault).toMatchObject({ exitCode: 1, hint: 'Look again.' })
  })

  it.each([200, 404, 502])('says who answered instead, and how that begins, at status %i', async (status) => {
    const url = await serve(
      (_request, response) => void response.writeHead(status, { server: 'nginx/1.24' }).end(`<html>${'x'.repeat(500)}`),
    )
    const agent = new AgentClient({ url, token: null })
    const fault = await faultOf(agent.get('/'))
    expect(fault.message).toContain(`is not a gpuwarden agent, or an older one (status ${status} from nginx/1.24: "<html>xxx`)
    expect(fault.message.length).toBeLessThan(250)
    expect((await agent.tryPost('/', {})).status).toBe(status === 200 ? 0 : status)
    expect(await agent.version()).toBe(null)
  })

  it('does not follow where it is sent to', async () => {
    const url = await serve((_request, response) => void response.writeHead(302, { location: 'http://example.invalid/' }).end())
    expect((await faultOf(new AgentClient({ url, token: 't' }).get('/'))).status).toBe(302)
  })

  it('gives up when no answer comes, also in the middle of one', async () => {
    const silent = new AgentClient({ url: await serve(() => undefined), token: null }, 50)
    expect(await silent.tryGet('/')).toMatchObject({ status: 0, code: 'late', message: 'no answer within 0.05 s' })
    expect((await faultOf(silent.get('/'))).message).toMatch(/^the agent at \S+ did not answer: no answer within 0\.05 s$/)
    expect((await faultOf(silent.stream('/'))).code).toBe('late')
    const halting = new AgentClient({ url: await serve((_request, response) => void response.write('{"a":')), token: null }, 50)
    expect((await halting.tryGet('/')).code).toBe('late')
  })

  it('says when nobody is there, when the connection breaks and when there is no end', async () => {
    const gone = await serve(() => undefined)
    expect(await new AgentClient({ url: 'http://127.0.0.1:1', token: null }).tryGet('/')).toMatchObject({
      status: 0,
      code: 'unreachable',
      message: 'ECONNREFUSED',
    })
    expect((await faultOf(new AgentClient({ url: 'http://127.0.0.1:1', token: null }).get('/'))).message).toContain(
      'no gpuwarden agent answers',
    )
    expect((await new AgentClient({ url: 'nonsense', token: null }).tryGet('/')).message).toBe('ERR_INVALID_URL')
    expect((await new AgentClient({ url: gone.replace('http:', 'https:'), token: null }, 2000).tryGet('/')).status).toBe(0)
    const breaking = await serve((_request, response) => {
      response.write('{"a":')
      setTimeout(() => response.destroy(), 20)
    })
    expect((await new AgentClient({ url: breaking, token: null }).tryGet('/')).message).toBe('the connection was closed')
    const endless = await serve((_request, response) => void response.writeHead(200, { 'content-length': String(2 ** 40) }).write('x'))
    expect((await new AgentClient({ url: endless, token: null }).tryGet('/')).message).toContain('too large for an agent')
  })

  it('listens to an answer that goes on for longer than the limit', async () => {
    const url = await serve((request, response) => {
      if (request.headers['last-event-id'] !== '7')
        return json(503, { error: { code: 'too_many_clients', message: 'Full.' } })(request, response)
      response.write('a')
      setTimeout(() => response.end('b'), 150)
    })
    const agent = new AgentClient({ url, token: null }, 50)
    const answer = await agent.stream('/api/v1/stream', { 'last-event-id': '7' })
    expect(await bodyOf(answer)).toBe('ab')
    expect(await faultOf(agent.stream('/'))).toMatchObject({ status: 503, code: 'too_many_clients', reason: 'Full.' })
  })
})
