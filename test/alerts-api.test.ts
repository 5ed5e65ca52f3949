/** The routes of alerts, channels and web push, on the real server with the real alert engine. */
import { createECDH, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ChannelHealth } from '../src/alerts/alerts-api.ts'
import { alertRoutes } from '../src/alerts/http-routes.ts'
import { PretendChannel, pretendWorld, temporaryDir, type World } from '../src/alerts/pretend-world.contract.ts'
import type { Silence } from '../src/alerts/silences.ts'
import { pushRoutes } from '../src/channels/push-routes.ts'
import { PushSubscriptions } from '../src/channels/push-subscriptions.ts'
import type { AlertView, PastAlert } from '../src/core/alert-contract.ts'
import type { Route } from '../src/core/route.ts'
import { startServer } from '../src/server/pretend-agent.contract.ts'

/** All that any of these routes answers; a good answer is held against the schema of its route, a refusal has only `error`. */
interface Body extends Partial<Omit<AlertView, 'silence'>>, Partial<Omit<Silence, 'id'>> {
  readonly id?: string
  readonly at?: number
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string }
  readonly alerts?: readonly (AlertView | PastAlert)[]
  readonly silences?: readonly Silence[]
  readonly channels?: readonly ChannelHealth[]
  readonly publicKey?: string
}

interface Answer {
  readonly status: number
  readonly body: Body
}

/** Asks, and holds every good answer against the shape that the route promises. */
async function serve(routes: readonly Route[]) {
  const { server, url } = await startServer({ routes })
  onTestFinished(() => server.close())
  return async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await fetch(url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const value = (await answer.json()) as Body
    const plain = path.replace(/\?.*/, '')
    const route = routes.find((one) => one.method === method && new RegExp(`^${one.path.replace(/:\w+/g, '[^/]+')}$`).test(plain))
    if (answer.status === 200) expect(route?.answer.parse(value)).toEqual(value)
    return { status: answer.status, body: value }
  }
}

async function alertServer(options: Parameters<typeof pretendWorld>[0] = {}, unusable = new Map<string, string>()) {
  const world: World = pretendWorld({ settings: { 'alerts.group_seconds': 0 }, ...options })
  const ask = await serve(alertRoutes({ alerts: world.alerts, unusable, now: () => world.at }))
  return { world, ask }
}

describe('alerts', () => {
  it('are listed with their state, and in the history when they are over', async () => {
    const { world, ask } = await alertServer()
    expect((await ask('GET', '/api/v1/alerts')).body.alerts).toEqual([])
    world.say('thermal|gpu=GPU-0')
    await world.pass(20_000)
    const { body } = await ask('GET', '/api/v1/alerts')
    expect(body).toMatchObject({ at: world.at, alerts: [{ fingerprint: 'thermal|gpu=GPU-0', state: 'firing', told: ['email'] }] })
    world.clear('thermal|gpu=GPU-0')
    await world.pass(120_000)
    expect((await ask('GET', '/api/v1/alerts/history')).body.alerts).toMatchObject([{ fingerprint: 'thermal|gpu=GPU-0' }])
    expect((await ask('GET', '/api/v1/alerts?limit=3')).body.error?.code).toBe('unknown_parameter')
  })

  it('have a history of which one asks for a part', async () => {
    const { world, ask } = await alertServer({ settings: { 'alerts.keep_firing_seconds': 0 } })
    const start = world.at
    for (const name of ['a', 'b', 'c']) {
      world.say(name)
      await world.pass(60_000)
      world.clear(name)
      await world.pass(60_000)
    }
    const names = async (query: string) =>
      (await ask('GET', `/api/v1/alerts/history${query}`)).body.alerts?.map(({ fingerprint }) => fingerprint)
    expect(await names('')).toEqual(['c', 'b', 'a'])
    expect(await names('?limit=2')).toEqual(['c', 'b'])
    expect(await names(`?from=${start + 90_000}`)).toEqual(['c', 'b'])
    expect(await names(`?to=${start + 150_000}`)).toEqual(['b', 'a'])
    expect(await names(`?from=${start + 90_000}&to=${start + 150_000}&limit=1`)).toEqual(['b'])
    for (const wrong of ['limit=0', 'limit=many', 'from=yesterday', 'limit=301'])
      expect((await ask('GET', `/api/v1/alerts/history?${wrong}`)).body.error?.code).toBe('invalid_parameter')
  })

  it('say what a page shows: the label of the GPU, who was notified, for whom a message waits', async () => {
    const channel = new PretendChannel()
    channel.goDown()
    const { world, ask } = await alertServer({ channel })
    world.say('thermal|gpu=GPU-1', { subject: { gpu: 'GPU-1' } })
    await world.pass(20_000)
    expect((await ask('GET', '/api/v1/alerts')).body.alerts).toMatchObject([
      { gpuLabel: '1', told: [], waiting: ['email'], unconfirmed: false },
    ])
    channel.goUp()
    await world.pass(20_000)
    expect((await ask('GET', '/api/v1/alerts')).body.alerts).toMatchObject([{ told: ['email'], waiting: [] }])
  })

  it('are no longer acknowledged when that is taken back, and then repeat', async () => {
    const { world, ask } = await alertServer({ settings: { 'alerts.group_seconds': 0, 'alerts.repeat_hours': 1 } })
    world.say('a')
    await world.pass(20_000)
    expect(await ask('DELETE', '/api/v1/alerts/a/ack')).toMatchObject({ status: 404, body: { error: { code: 'unknown_alert' } } })
    await ask('POST', '/api/v1/alerts/a/ack', { seconds: 86_400 })
    await world.pass(2 * 3_600_000, 30_000)
    expect(world.channel.said()).toEqual(['a firing'])
    expect((await ask('DELETE', '/api/v1/alerts/a/ack')).body).toMatchObject({ acknowledged: null, mutedBy: null })
    await world.pass(20_000)
    expect(world.channel.said()).toEqual(['a firing', 'a repeat'])
    expect((await ask('DELETE', '/api/v1/alerts/nothing/ack')).status).toBe(404)
  })

  it('are acknowledged by their fingerprint, for a time that is given or 4 hours', async () => {
    const { world, ask } = await alertServer()
    world.say('thermal|gpu=GPU-0')
    await world.pass(20_000)
    const path = `/api/v1/alerts/${encodeURIComponent('thermal|gpu=GPU-0')}/ack`
    expect((await ask('POST', path, { by: 'ada', seconds: 60 })).body).toMatchObject({
      mutedBy: 'acknowledged',
      acknowledged: { by: 'ada', until: world.at + 60_000 },
    })
    expect((await ask('POST', path, {})).body.acknowledged?.until).toBe(world.at + 4 * 3_600_000)
    expect((await ask('POST', path, { until: world.at - 1 })).body.error).toMatchObject({ code: 'invalid_body', message: /future/ })
    expect((await ask('POST', path, { until: world.at + 1, seconds: 1 })).body.error?.message).toMatch(/expected one of them/)
    expect(await ask('POST', '/api/v1/alerts/nothing/ack', {})).toMatchObject({ status: 404, body: { error: { code: 'unknown_alert' } } })
  })
})

describe('silences', () => {
  it('are made from text or parts, listed, and ended', async () => {
    const { world, ask } = await alertServer()
    const matchers = ['gpu=0', { name: 'severity', operator: '!=', value: 'critical' }]
    const made = await ask('POST', '/api/v1/silences', { matchers, seconds: 3600, comment: 'burn-in', by: 'ada' })
    expect(made.body).toMatchObject({ until: world.at + 3_600_000, comment: 'burn-in', by: 'ada', matchers: [{ name: 'gpu' }, {}] })
    expect((await ask('GET', '/api/v1/silences')).body.silences).toEqual([made.body])
    expect((await ask('DELETE', `/api/v1/silences/${made.body.id}`)).body).toEqual({ id: made.body.id })
    expect(await ask('DELETE', `/api/v1/silences/${made.body.id}`)).toMatchObject({
      status: 404,
      body: { error: { code: 'unknown_silence' } },
    })
  })

  it.each([
    [{ matchers: [] }, /matchers/],
    [{ matchers: ['gpu'] }, /is not a matcher/],
    [{ matchers: ['color=red'] }, /"color" cannot be matched/],
    [{ matchers: ['user=~(a+)+'] }, /too long/],
    [{ matchers: ['gpu=0'], seconds: -1 }, /seconds/],
    [{ matchers: ['gpu=0'], until: 1 }, /future/],
    [{ matchers: ['gpu=0'], forever: true }, /forever/],
  ])('%j is refused with the reason', async (body, reason) => {
    const { ask, world } = await alertServer()
    const answer = await ask('POST', '/api/v1/silences', body)
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_body', message: expect.stringMatching(reason) } } })
    expect(world.alerts.silences()).toEqual([])
  })

  it('are on the disk when the answer comes', async () => {
    const dir = await temporaryDir()
    const { ask } = await alertServer({ dir })
    const { body } = await ask('POST', '/api/v1/silences', { matchers: ['gpu=0'] })
    expect(readFileSync(join(dir, 'alerts.journal'), 'utf8')).toContain(body.id ?? 'an id')
  })
})

describe('channels', () => {
  it('are listed with how they do, and those that cannot be used with the reason', async () => {
    const { world, ask } = await alertServer({}, new Map([['team', 'the variable SLACK_URL is not set']]))
    world.say('thermal|gpu=GPU-0')
    await world.pass(20_000)
    expect((await ask('GET', '/api/v1/channels')).body.channels).toMatchObject([
      { channel: 'email', problem: null, depth: 0, results: { delivered: 1 } },
      { channel: 'team', problem: 'the variable SLACK_URL is not set', results: { delivered: 0 } },
    ])
    expect((await ask('POST', '/api/v1/channels/team/test')).body).toEqual({
      channel: 'team',
      ok: false,
      answer: 'not usable: the variable SLACK_URL is not set',
      retry: false,
      idle: false,
    })
  })

  it('that nobody listens to get nothing and keep nothing, until somebody does', async () => {
    let isThere = false
    const channel = Object.assign(new PretendChannel('webpush'), { idle: () => (isThere ? null : 'no browser has subscribed') })
    const { world, ask } = await alertServer({ channel })
    world.say('a')
    await world.pass(60_000)
    expect((await ask('GET', '/api/v1/channels')).body.channels).toMatchObject([
      { channel: 'webpush', problem: 'no browser has subscribed', depth: 0, results: { delivered: 0, retried: 0, refused: 0 } },
    ])
    expect((await ask('GET', '/api/v1/alerts')).body.alerts).toMatchObject([{ state: 'firing', told: [], waiting: [] }])
    expect((await ask('POST', '/api/v1/channels/webpush/test')).body).toEqual({
      ...{ channel: 'webpush', ok: false, answer: 'no browser has subscribed', retry: false, idle: true },
    })
    expect(channel.tries).toBe(0)
    isThere = true
    await world.pass(60_000)
    expect(channel.said()).toEqual(['a firing'])
    expect((await ask('GET', '/api/v1/channels')).body.channels).toMatchObject([{ problem: null, results: { delivered: 1 } }])
  })

  it("are tested with the server's own answer, not too often", async () => {
    const channel = new PretendChannel()
    const { world, ask } = await alertServer({ channel })
    expect((await ask('POST', '/api/v1/channels/email/test')).body).toMatchObject({ channel: 'email', ok: true, retry: false })
    expect(channel.got.at(-1)?.kind).toBe('test')
    channel.answer = () => ({ ok: false, retry: false, reason: '535 no' })
    expect((await ask('POST', '/api/v1/channels/email/test')).body).toEqual({
      channel: 'email',
      ok: false,
      answer: '535 no',
      retry: false,
      idle: false,
    })
    for (let more = 0; more < 4; more++) await ask('POST', '/api/v1/channels/email/test')
    expect(await ask('POST', '/api/v1/channels/email/test')).toMatchObject({ status: 429, body: { error: { code: 'too_many_requests' } } })
    world.at += 61_000
    expect((await ask('POST', '/api/v1/channels/email/test')).status).toBe(200)
    expect((await ask('POST', '/api/v1/channels/pigeon/test')).body.error).toMatchObject({
      code: 'unknown_channel',
      hint: 'There are: email.',
    })
  })
})

describe('web push', () => {
  const browser = (name: string) => {
    const key = createECDH('prime256v1')
    return {
      endpoint: `https://push.example.org/${name}`,
      expirationTime: null,
      keys: { p256dh: key.generateKeys('base64url'), auth: randomBytes(16).toString('base64url') },
    }
  }

  it('gives its key, takes browsers and lets them go', async () => {
    const ask = await serve(pushRoutes(new PushSubscriptions(await temporaryDir())))
    const { body } = await ask('GET', '/api/v1/push/key')
    expect(Buffer.from(body.publicKey ?? '', 'base64url')).toHaveLength(65)
    expect((await ask('GET', '/api/v1/push/key')).body).toEqual(body)
    expect((await ask('POST', '/api/v1/push/subscriptions', browser('a'))).body).toEqual({ subscriptions: 1 })
    expect((await ask('POST', '/api/v1/push/subscriptions', browser('b'))).body).toEqual({ subscriptions: 2 })
    expect((await ask('DELETE', '/api/v1/push/subscriptions', { endpoint: 'https://push.example.org/a' })).body).toEqual({
      subscriptions: 1,
    })
    expect((await ask('POST', '/api/v1/push/subscriptions', { endpoint: 'http://127.0.0.1/x' })).body.error?.code).toBe('invalid_body')
  })

  it('works for a page of the web UI that signed in, and for no other site', async () => {
    const token = 'a-token-nobody-guesses'
    const routes = pushRoutes(new PushSubscriptions(await temporaryDir()))
    const { server, url } = await startServer({ routes }, { 'server.token': token })
    onTestFinished(() => server.close())
    const json = { 'content-type': 'application/json' }
    const page = { ...json, origin: url, 'sec-fetch-site': 'same-origin' }
    const signedIn = await fetch(`${url}/api/v1/session`, { method: 'POST', headers: page, body: JSON.stringify({ token }) })
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const status = async (method: string, headers: Record<string, string>) => {
      const body = method === 'GET' ? {} : { body: JSON.stringify(browser('a')) }
      const path = method === 'GET' ? '/api/v1/push/key' : '/api/v1/push/subscriptions'
      return (await fetch(url + path, { method, headers, ...body })).status
    }
    expect([await status('GET', {}), await status('POST', page), await status('DELETE', page)]).toEqual([401, 401, 401])
    const own = { ...page, cookie }
    expect([await status('GET', { cookie }), await status('POST', own), await status('DELETE', own)]).toEqual([200, 200, 200])
    const other = { ...json, cookie, origin: 'https://evil.example.org', 'sec-fetch-site': 'cross-site' }
    expect([await status('POST', other), await status('POST', { ...json, cookie })]).toEqual([403, 403])
  })

  it('is not there without a folder, or while the folder cannot be used', async () => {
    const without = await serve(pushRoutes(null))
    expect(await without('GET', '/api/v1/push/key')).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
    const file = join(await temporaryDir(), 'a-file')
    writeFileSync(file, '')
    const broken = await serve(pushRoutes(new PushSubscriptions(file)))
    expect(await broken('POST', '/api/v1/push/subscriptions', browser('a'))).toMatchObject({ status: 503 })
  })
})

it('docs/http-api.md has every one of these routes', () => {
  const text = readFileSync(new URL('../docs/http-api.md', import.meta.url), 'utf8')
  const routes = [...alertRoutes({ alerts: null, unusable: new Map(), now: Date.now }), ...pushRoutes(null)]
  for (const { method, path } of routes) expect(text).toContain(`\`${method} ${path}\``)
})
