import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, json, outcome, type Question } from './ask.fixture.ts'
import { NOW, openStream, type Running, startServer, TOKEN, write } from './pretend-agent.contract.ts'

const typed = { 'content-type': 'application/json' }

const signIn = (port: number, token: string, headers: Record<string, string> = {}) =>
  ask(port, '/api/v1/session', { method: 'POST', headers: { ...typed, ...headers }, body: JSON.stringify({ token }) })

/** As a browser keeps it. */
async function cookieOf(port: number): Promise<string> {
  const { headers } = await signIn(port, TOKEN)
  return headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
}

describe('with a token', () => {
  let running: Running
  let cookie: string
  let own: string
  beforeAll(async () => {
    running = await startServer({ routes: [write] }, { 'server.token': TOKEN })
    cookie = await cookieOf(running.port)
    own = `http://localhost:${running.port}`
  })
  afterAll(() => running.server.close())

  it('says what is asked for, and who this is only to who is let in', async () => {
    const stranger = await ask(running.port, '/api/v1/session')
    expect(json(stranger)).toEqual({ required: true, signedIn: false, canKill: false, hostname: null, version: null })
    for (const headers of [{ cookie }, { authorization: `Bearer ${TOKEN}` }]) {
      const known = await ask(running.port, '/api/v1/session', { headers })
      expect(json(known)).toEqual({ required: true, signedIn: true, canKill: false, hostname: 'pretend', version: '9.9.9' })
    }
  })

  it('gives a cookie for the token, with which everything can be read', async () => {
    const answer = await signIn(running.port, ` ${TOKEN}\n`)
    expect(json(answer)).toEqual({ signedIn: true, expiresAt: NOW + 30 * 86_400_000 })
    const [header = ''] = answer.headers['set-cookie'] ?? []
    expect(header).toMatch(/^gpuwarden_session_\d+=\d+\.[\w-]{22}\.[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/)
    expect(header).toContain(`_${running.port}=`)
    for (const path of ['/api/v1/gpus', '/metrics', '/openapi.json', '/']) {
      expect((await ask(running.port, path, { headers: { cookie } })).status, path).toBe(200)
      expect((await ask(running.port, path)).status, path).toBe(401)
    }
    const stream = await openStream(`${running.url}/api/v1/stream`, { cookie })
    await stream.until(() => stream.events.length > 0)
    expect(stream.events[0]?.event).toBe('hello')
    stream.close()
  })

  it('takes it away again', async () => {
    const answer = await ask(running.port, '/api/v1/session', { method: 'DELETE', headers: { cookie, origin: own } })
    expect(json(answer)).toEqual({ signedIn: false })
    expect(answer.headers['set-cookie']?.[0]).toContain(`gpuwarden_session_${running.port}=; Path=/; Max-Age=0`)
  })

  it('takes what changes something by cookie only from its own pages', async () => {
    const post = (headers: Record<string, string>) =>
      ask(running.port, '/api/v1/write', { method: 'POST', headers: { ...typed, ...headers }, body: '{}' }).then(
        ({ status, bytes }) => `${status} ${/"code":"(\w+)"/.exec(bytes.toString())?.[1] ?? bytes}`,
      )
    expect(await post({ cookie, origin: own })).toBe('200 "done"')
    expect(await post({ cookie, 'sec-fetch-site': 'same-origin' })).toBe('200 "done"')
    expect(await post({ cookie })).toBe('403 cross_site')
    expect(await post({ cookie, 'sec-fetch-site': 'none' })).toBe('403 cross_site')
    expect(await post({ cookie, 'sec-fetch-site': 'same-site', origin: own })).toBe('403 cross_site')
    expect(await post({ cookie, origin: `http://localhost:${running.port + 1}` })).toBe('403 cross_site')
    expect(await post({ cookie, origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe('403 cross_site')
    // Not a cookie that a browser adds by itself: a program may hold both.
    expect(await post({ cookie, authorization: `Bearer ${TOKEN}` })).toBe('200 "done"')
    expect(await post({ origin: own })).toBe('401 missing_token')
    const signOut = await ask(running.port, '/api/v1/session', { method: 'DELETE', headers: { cookie } })
    expect(outcome(signOut)).toBe('403 cross_site')
    const stolen = await ask(running.port, '/api/v1/gpus', {
      headers: { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    })
    expect(outcome(stolen)).toBe('403 cross_site')
  })

  it('takes a wrong or foreign cookie for none, however often', async () => {
    const name = `gpuwarden_session_${running.port}`
    const value = cookie.slice(name.length + 1)
    for (const wrong of [
      `${name}=`,
      `${name}=nonsense`,
      `${name}=%%%.!!!.***`,
      `${name}=1.${'A'.repeat(22)}.${'A'.repeat(43)}`,
      `${name}=${'A'.repeat(8000)}`,
      `${name}="${value}"`,
      `gpuwarden_session_${running.port + 1}=${value}`,
      ';;;===;',
    ]) {
      const answer = await ask(running.port, '/api/v1/gpus', { headers: { cookie: wrong } })
      expect(outcome(answer), wrong.slice(0, 60)).toBe('401 missing_token')
    }
    for (let n = 0; n < 20; n++) await ask(running.port, '/api/v1/gpus', { headers: { cookie: `${name}=guess` } })
    expect((await ask(running.port, '/api/v1/gpus', { headers: { cookie: `${name}=x; ${cookie}` } })).status).toBe(200)
    const huge = `GET /api/v1/gpus HTTP/1.1\r\nHost: localhost\r\nCookie: ${name}=${'A'.repeat(100_000)}\r\n\r\n`
    const said = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(running.port, '127.0.0.1', () => socket.end(huge))
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('error', () => resolve(text))
      socket.on('close', () => resolve(text))
    })
    // Node may close before its 431 is read.
    expect(said === '' || said.includes('431')).toBe(true)
    expect((await ask(running.port, '/healthz')).status).toBe(200)
  })

  it('refuses to sign in with what is no token', async () => {
    const cases: readonly [Question['body'], Record<string, string>, string][] = [
      ['{"token":"wrong"}', typed, '401 wrong_token'],
      ['{"token":""}', typed, '400 invalid_body'],
      ['{"token":7}', typed, '400 invalid_body'],
      ['{"token":"a","extra":1}', typed, '400 invalid_body'],
      ['token=a', { 'content-type': 'application/x-www-form-urlencoded' }, '415 unsupported_media_type'],
      [JSON.stringify({ token: 'x'.repeat(5000) }), typed, '413 body_too_large'],
      ['{"token":"a"}', { ...typed, origin: 'http://evil.com' }, '403 cross_site'],
    ]
    for (const [body, headers, expected] of cases) {
      const answer = await ask(running.port, '/api/v1/session', { method: 'POST', headers, ...(body === undefined ? {} : { body }) })
      expect(outcome(answer), body?.slice(0, 40)).toBe(expected)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })

  it('never repeats or logs the token or the cookie', async () => {
    const said = JSON.stringify([await signIn(running.port, 'not-the-secret'), running.log.lines])
    for (const secret of [TOKEN, 'not-the-secret', cookie.split('=')[1] ?? '?']) expect(said).not.toContain(secret)
  })
})

it('slows down who guesses, by whichever way', async () => {
  const running = await startServer({}, { 'server.token': TOKEN })
  for (let n = 0; n < 5; n++) {
    expect(outcome(await signIn(running.port, `guess-${n}`))).toBe('401 wrong_token')
    await ask(running.port, '/api/v1/session', { headers: { authorization: `Bearer guess-${n}` } })
  }
  const answer = await signIn(running.port, 'guess')
  expect(outcome(answer)).toBe('429 too_many_attempts')
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  expect((await signIn(running.port, TOKEN)).status).toBe(200)
  await running.server.close()
})

it('lasts over a restart, and not over a new token', async () => {
  const first = await startServer({}, { 'server.token': TOKEN })
  const cookie = await cookieOf(first.port)
  await first.server.close()
  const again = async (token: string) => {
    const running = await startServer({}, { 'server.token': token })
    const renamed = cookie.replace(/_\d+=/, `_${running.port}=`)
    const { status } = await ask(running.port, '/api/v1/gpus', { headers: { cookie: renamed } })
    await running.server.close()
    return status
  }
  expect([await again(TOKEN), await again('another-token-of-ours')]).toEqual([200, 401])
})

it('shows a stranger nothing about what is allowed', async () => {
  const processControl = { identify: () => ({ ok: false as const, reason: 'never' }) }
  const running = await startServer({ processControl }, { 'server.token': TOKEN, 'server.allow_kill': true })
  const canKill = async (headers: Record<string, string>) => json(await ask(running.port, '/api/v1/session', { headers })).canKill
  expect([await canKill({}), await canKill({ authorization: `Bearer ${TOKEN}` })]).toEqual([false, true])
  await running.server.close()
})

it('asks for nothing when no token is configured', async () => {
  const running = await startServer({ routes: [write] })
  const session = await ask(running.port, '/api/v1/session')
  expect(json(session)).toEqual({ required: false, signedIn: true, canKill: false, hostname: 'pretend', version: '9.9.9' })
  const answer = await signIn(running.port, 'anything')
  expect([json(answer), answer.headers['set-cookie']]).toEqual([{ signedIn: true, expiresAt: null }, undefined])
  const stale = { ...typed, cookie: `gpuwarden_session_${running.port}=stale` }
  expect((await ask(running.port, '/api/v1/write', { method: 'POST', headers: stale, body: '{}' })).status).toBe(200)
  await running.server.close()
})
