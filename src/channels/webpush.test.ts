import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { group, hostile, late, message } from './alert-message.fixture.ts'
import { channelContract } from './channel.contract.ts'
import { openHttpServer } from './http-stand.fixture.ts'
import { PushSubscriptions } from './push-subscriptions.ts'
import { openWebPush, pushPayload } from './webpush.ts'
import { encryptPush, MOST_PAYLOAD_BYTES } from './webpush-encryption.ts'

const root = mkdtempSync(join(tmpdir(), 'gpuwarden-push-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let dir = root
beforeEach(() => {
  dir = mkdtempSync(join(root, 'd-'))
})

const stop = new AbortController().signal
const OPTIONS = { contact: 'mailto:gpu@example.org', keep_hours: 24 }
const SECRET = 'T0pSecret-a1b2c3d4e5'

/** A browser: it holds the private half and can read what arrives. */
function browser() {
  const pair = createECDH('prime256v1')
  pair.generateKeys()
  const auth = randomBytes(16)
  return {
    subscription: (endpoint: string) => ({ endpoint, keys: { p256dh: pair.getPublicKey('base64url'), auth: auth.toString('base64url') } }),
    read: (body: Buffer) => {
      const [salt, sender, sealed] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86)]
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), pair.getPublicKey(), sender])
      const material = Buffer.from(hkdfSync('sha256', pair.computeSecret(sender), auth, info, 32))
      const key = Buffer.from(hkdfSync('sha256', material, salt, 'Content-Encoding: aes128gcm\0', 16))
      const nonce = Buffer.from(hkdfSync('sha256', material, salt, 'Content-Encoding: nonce\0', 12))
      const decipher = createDecipheriv('aes-128-gcm', key, nonce)
      decipher.setAuthTag(sealed.subarray(-16))
      const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
      expect(plain.at(-1)).toBe(2)
      return plain.subarray(0, -1).toString()
    },
  }
}

channelContract('webpush', async (behavior) => {
  const server = await openHttpServer(behavior)
  if (behavior === 'down') await server.close()
  const subscriptions = new PushSubscriptions(dir, { allowsInside: true })
  const client = browser()
  await subscriptions.add(client.subscription(`${server.url}/push/${SECRET}`))
  return {
    channel: openWebPush('webpush', OPTIONS, subscriptions, behavior === 'hang' ? 400 : 20_000),
    secrets: [SECRET],
    says: 'sent to 1 browsers',
    received: () => server.requests.map(({ body }) => client.read(body)).join('\n'),
    close: server.close,
  }
})

describe('webpush', () => {
  it('encrypts as the example of RFC 8291', () => {
    const body = encryptPush(
      Buffer.from('When I grow up, I want to be a watermelon'),
      {
        p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        auth: 'BTBZMqHH6r4Tts7J_aSIgg',
      },
      {
        salt: Buffer.from('DGv6ra1nlYgDCS1FRnbzlw', 'base64url'),
        senderPrivateKey: Buffer.from('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw', 'base64url'),
      },
    )
    expect(Buffer.from(body).toString('base64url')).toBe(
      'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    )
  })

  it('says who it is by a signature of its own key', async () => {
    const server = await openHttpServer()
    const subscriptions = new PushSubscriptions(dir, { allowsInside: true })
    const client = browser()
    await subscriptions.add(client.subscription(`${server.url}/push/1`))
    expect(await openWebPush('w', OPTIONS, subscriptions).deliver(message, stop)).toMatchObject({ ok: true })
    const [request] = server.requests
    const [, token = '', key = ''] = /^vapid t=([^,]+), k=(.+)$/.exec(request?.headers.authorization ?? '') ?? []
    const [head = '', claims = '', signature = ''] = token.split('.')
    const point = Buffer.from(key, 'base64url')
    const jwk = { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') }
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
    expect(
      verify(
        'sha256',
        Buffer.from(`${head}.${claims}`),
        { key: publicKey, dsaEncoding: 'ieee-p1363' },
        Buffer.from(signature, 'base64url'),
      ),
    ).toBe(true)
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ aud: server.url, sub: OPTIONS.contact })
    expect(request?.headers).toMatchObject({ ttl: '86400', urgency: 'high', 'content-encoding': 'aes128gcm' })
    expect(JSON.parse(client.read(request?.body ?? Buffer.alloc(0)))).toMatchObject({
      tone: 'critical',
      tag: message.threadId,
      url: 'http://box:4780/#/alerts',
    })
    await server.close()
  })

  it('is no delivery where nobody has subscribed, or nobody any more, and says so', async () => {
    const gone = await openHttpServer()
    gone.answer = { status: 410, body: '' }
    const subscriptions = new PushSubscriptions(dir, { allowsInside: true })
    const channel = openWebPush('w', OPTIONS, subscriptions)
    const nobody = { ok: false, retry: false, hopeless: true, reason: 'no browser has subscribed' }
    expect([channel.idle(), await channel.deliver(message, stop)]).toEqual(['no browser has subscribed', nobody])
    await subscriptions.add(browser().subscription(`${gone.url}/x`))
    expect(channel.idle()).toBe(null)
    expect(await channel.deliver(message, stop)).toMatchObject({ ok: false, retry: false, reason: expect.stringContaining('any more') })
    expect(channel.idle()).toBe('no browser has subscribed')
    await gone.close()
  })

  it('is idle with the reason while the browsers cannot be read', () => {
    const file = join(dir, 'a-file')
    writeFileSync(file, '')
    expect(openWebPush('w', OPTIONS, new PushSubscriptions(file)).idle()).toContain('cannot be read')
  })

  it('sends nothing to where a name leads inside by now', async () => {
    const server = await openHttpServer()
    const endpoint = `https://localhost:${new URL(server.url).port}/x`
    await new PushSubscriptions(dir, { allowsInside: true }).add(browser().subscription(endpoint))
    const channel = openWebPush('w', OPTIONS, new PushSubscriptions(dir))
    expect(await channel.deliver(message, stop)).toEqual({
      ...{ ok: false, retry: false },
      reason: 'localhost is now in a private network: nothing was sent there',
    })
    expect(server.requests).toEqual([])
    await server.close()
  })

  it('fits whatever it has to say', () => {
    const quotes = {
      ...message,
      alerts: message.alerts.map((one) => ({ ...one, finding: { ...one.finding, message: '"\\'.repeat(2000) } })),
    }
    for (const what of [message, group, late, hostile, quotes])
      expect(Buffer.byteLength(pushPayload(what))).toBeLessThanOrEqual(MOST_PAYLOAD_BYTES)
  })

  it('forgets a browser that is gone, and tries again only those that were put off', async () => {
    const [gone, busy, fine] = await Promise.all([openHttpServer(), openHttpServer('later'), openHttpServer()])
    gone.answer = { status: 410, body: '' }
    const subscriptions = new PushSubscriptions(dir, { allowsInside: true })
    for (const server of [gone, busy, fine]) await subscriptions.add(browser().subscription(`${server.url}/x`))
    const channel = openWebPush('w', OPTIONS, subscriptions)
    expect(await channel.deliver(message, stop)).toMatchObject({ ok: false, retry: true })
    busy.behavior = 'ok'
    expect(await channel.deliver(message, stop)).toMatchObject({ ok: true })
    expect([gone, busy, fine].map((server) => server.requests.length)).toEqual([1, 2, 1])
    expect(new PushSubscriptions(dir, { allowsInside: true }).list()).toHaveLength(2)
    await Promise.all([gone, busy, fine].map((server) => server.close()))
  })
})

describe('push subscriptions', () => {
  it('keeps keys and browsers for the owner alone, over a restart', async () => {
    const first = new PushSubscriptions(dir)
    expect(await first.add(browser().subscription('https://push.example/1'))).toEqual({ ok: true })
    const keys = await first.keys()
    expect(statSync(join(dir, 'push-keys.json')).mode & 0o777).toBe(0o600)
    expect(statSync(join(dir, 'push-subscriptions.json')).mode & 0o777).toBe(0o600)
    const second = new PushSubscriptions(dir)
    expect(await second.keys()).toEqual(keys)
    expect(second.list()).toHaveLength(1)
    expect(await second.remove('https://push.example/1')).toBe(true)
    expect(await second.remove('https://push.example/1')).toBe(false)
  })

  it.each([
    [null],
    [{ endpoint: 'http://10.0.0.1/', keys: browser().subscription('x').keys }],
    [{ endpoint: 'https://push.example', keys: { p256dh: 'abc', auth: 'abc' } }],
    [{ endpoint: 'nonsense', keys: browser().subscription('x').keys }],
    [browser().subscription('https://127.0.0.1/x')],
    [browser().subscription('https://[fe80::1]/x')],
    [browser().subscription('https://router/x')],
    [browser().subscription('https://user:password@push.example/x')],
  ])('refuses %j', async (candidate) => {
    expect(await new PushSubscriptions(dir).add(candidate)).toMatchObject({
      ok: false,
      reason: expect.stringContaining('not a push subscription'),
    })
  })

  it('is bounded', async () => {
    const subscriptions = new PushSubscriptions(dir)
    for (let index = 0; index < 64; index++) await subscriptions.add(browser().subscription(`https://push.example/${index}`))
    expect(await subscriptions.add(browser().subscription('https://push.example/64'))).toMatchObject({ ok: false })
    expect(await subscriptions.add(browser().subscription('https://push.example/3'))).toEqual({ ok: true })
  })

  it('sets a broken file aside and says so', () => {
    writeFileSync(join(dir, 'push-subscriptions.json'), '[{"endpoint":')
    const subscriptions = new PushSubscriptions(dir)
    expect(subscriptions.list()).toEqual([])
    expect(subscriptions.problems[0]).toContain('push-subscriptions.json.corrupt')
    expect(readFileSync(join(dir, 'push-subscriptions.json.corrupt'), 'utf8')).toBe('[{"endpoint":')
  })
})
