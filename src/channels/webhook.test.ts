import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HOSTILE, hostile, message } from './alert-message.fixture.ts'
import { channelContract } from './channel.contract.ts'
import { httpStand, openHttpServer } from './http-stand.fixture.ts'
import { PAYLOAD_NAMES, payloadOf } from './payload.ts'
import { oneLine } from './plain-text.ts'
import { fillTemplate, type Json } from './template.ts'
import { webhook } from './webhook.ts'

const SECRET = 'T0pSecret-a1b2c3d4e5'
const env = { env: {}, stateDir: '/' }
const stop = new AbortController().signal

channelContract(
  'webhook',
  httpStand(webhook, (url) => ({ url: `${url}/hook?key=${SECRET}`, headers: { 'X-Api-Key': `${SECRET}-2` }, secret: `${SECRET}-3` }), [
    SECRET,
  ]),
)

async function delivered(options: object, what = message) {
  const server = await openHttpServer()
  const delivery = await webhook.open('w', { url: server.url, ...options }, env).deliver(what, stop)
  await server.close()
  return { delivery, request: server.requests[0], text: server.requests[0]?.body.toString() ?? '' }
}

describe('an address that no request can be sent to', () => {
  const open = (url: string) => webhook.open('hook', { url }, { env: { URL: url }, stateDir: '/nonexistent' })

  it.each([1, 22, 25, 587, 6000, 6667, 10_080])('is refused at the start: port %d', async (port) => {
    expect(() => open(`http://127.0.0.1:${port}/in`)).toThrow(`hook.url: port ${port} is reserved for another protocol`)
    // What the list says is what fetch does.
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ cause: expect.objectContaining({ message: 'bad port' }) })
  })

  it.each(['https://user:pass@example.org/in', 'https://user@example.org/in', 'https://:pass@example.org/'])(
    'is refused at the start: %s',
    (url) => {
      expect(() => open(url)).toThrow(/hook\.url: expected an address without a user name and password/)
      expect(() => open(url)).not.toThrow(/pass@/)
      expect(() => webhook.open('hook', { url: 'env:URL' }, { env: { URL: url }, stateDir: '/nonexistent' })).toThrow(/user name/)
    },
  )

  it.each(['http://127.0.0.1:8080/in', 'https://example.org/in', 'https://example.org:443/', 'http://[::1]:9093/'])(
    'is no other: %s',
    (url) => {
      expect(() => open(url)).not.toThrow()
    },
  )
})

describe('webhook', () => {
  it('posts the documented payload with an idempotency key', async () => {
    const { request, text } = await delivered({ headers: { 'X-Api-Key': 'abc' } })
    const body = JSON.parse(text)
    expect(Object.keys(body)).toEqual([...PAYLOAD_NAMES])
    expect(body).toMatchObject({
      version: 1,
      severity: 'critical',
      alerts: [{ detector: 'memory_leak', user: 'alice', process: { slurmJob: '991' } }],
    })
    expect(request?.headers).toMatchObject({ 'x-api-key': 'abc', 'idempotency-key': message.id, 'content-type': 'application/json' })
  })

  it('signs time and body so that the receiver can check both', async () => {
    const { request, text } = await delivered({ secret: SECRET })
    const seconds = request?.headers['x-gpuwarden-timestamp']
    const expected = createHmac('sha256', SECRET).update(`${seconds}.${text}`).digest('hex')
    expect(request?.headers['x-gpuwarden-signature']).toBe(`sha256=${expected}`)
  })

  it('fills a template without letting a value out of its string', async () => {
    const template = {
      text: 'on {{host}}: {{alerts.0.message}}',
      n: '{{alerts.0.confidence}}',
      list: '{{alerts.0.advice}}',
      none: '{{alerts.9.x}}',
    }
    const { text } = await delivered({ template }, hostile)
    const body = JSON.parse(text)
    expect(Object.keys(body)).toEqual(['text', 'n', 'list', 'none'])
    expect(body.text).toBe(`on ${oneLine(HOSTILE)}: ${oneLine(HOSTILE)}`)
    expect(body).toMatchObject({ n: 0.92, none: null })
  })

  it.each([
    [{ url: 'ftp://x' }, /url: expected an address that begins with https/],
    [{ url: 'nonsense' }, /url: expected an address/],
    [{ url: 'http://x', headers: { 'a b': 'c' } }, /headers/],
    [{ url: 'http://x', headers: { a: 'b\r\nEvil: 1' } }, /headers\.a: expected a value of printable/],
    [{ url: 'http://x', template: { a: '{{secret}}' } }, /template: unknown placeholder \{\{secret\}\}/],
    [{ url: 'http://x', urll: 1 }, /Unrecognized key/],
  ])('refuses %j by the name of the option', (options, expected) => {
    expect(() => webhook.open('w', options, env)).toThrow(expected)
  })

  it('does not follow a redirect with its secrets', async () => {
    const [first, second] = await Promise.all([openHttpServer(), openHttpServer()])
    first.answer = { status: 307, body: '', headers: { location: second.url } }
    expect(await webhook.open('w', { url: first.url }, env).deliver(message, stop)).toMatchObject({ ok: false, retry: false })
    expect(second.requests).toHaveLength(0)
    await Promise.all([first.close(), second.close()])
  })

  it.each([
    [408, true],
    [425, true],
    [429, true],
    [500, true],
    [599, true],
    [400, false],
    [401, false],
    [404, false],
    [413, false],
  ])('judges %i: retry %s', async (status, retry) => {
    const server = await openHttpServer()
    server.answer = { status, body: 'x'.repeat(100_000), headers: { 'retry-after': '17' } }
    const delivery = await webhook.open('w', { url: server.url }, env).deliver(message, stop)
    expect(delivery).toMatchObject({ ok: false, retry })
    if (!delivery.ok) {
      expect(delivery.reason.length).toBeLessThan(700)
      if (retry) expect(delivery.reason).toContain('17')
    }
    await server.close()
  })
})

describe('template', () => {
  it('gives JSON of the same shape for any values', () => {
    const template: Json = { a: 'x {{title}} y', b: ['{{host}}', 1, null, true], c: { d: '{{alerts}}' } }
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (title, host) => {
        const filled = JSON.parse(JSON.stringify(fillTemplate(template, { title, host, alerts: [] })))
        expect(Object.keys(filled)).toEqual(['a', 'b', 'c'])
        expect(filled.b).toHaveLength(4)
      }),
    )
  })

  it('reaches own values only', () => {
    expect(fillTemplate('{{title.constructor}} {{__proto__}} {{alerts.length}}', payloadOf(message))).toBe('  1')
  })
})
