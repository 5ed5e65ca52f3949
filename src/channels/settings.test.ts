import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { message } from './alert-message.fixture.ts'
import { openHttpServer } from './http-stand.fixture.ts'
import { CHANNEL_KINDS, checkChannels, openChannels } from './index.ts'
import { PushSubscriptions } from './push-subscriptions.ts'
import { maskSecrets, redactor } from './secrets.ts'
import { type ChannelValues, channelSettings } from './settings.ts'

const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-channels-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const defaults = Object.fromEntries(Object.entries(channelSettings).map(([key, entry]) => [key, entry.default])) as ChannelValues
const surroundings = { env: { HOOK_URL: 'https://hooks.example.org/T0pSecret', EMPTY: '' }, stateDir: dir }
const names = (opened: { channels: readonly { name: string }[] }) => opened.channels.map(({ name }) => name)
const parse = (value: unknown) => channelSettings.channels.schema.safeParse(value)

describe('the channels setting', () => {
  it('takes one of each kind', () => {
    const url = 'https://example.org/x'
    const channels = {
      mail: { type: 'email', to: ['a@example.org'] },
      team: { type: 'slack', url },
      fun: { type: 'discord', url },
      bot: { type: 'telegram', token: '1:x', chat: 5 },
      office: { type: 'teams', url },
      phone: { type: 'ntfy', topic: 'abc' },
      phone2: { type: 'pushover', token: 'a', user_key: 'b' },
      duty: { type: 'pagerduty', routing_key: 'abc' },
      am: { type: 'alertmanager', url },
      hook: { type: 'webhook', url: 'env:HOOK_URL', template: { text: '{{title}}' } },
      browser: { type: 'webpush' },
      script: { type: 'command', command: ['/bin/true'], enabled: false },
    }
    expect(parse(channels)).toMatchObject({ success: true })
    expect(new Set(Object.values(channels).map(({ type }) => type))).toEqual(new Set(CHANNEL_KINDS.map(({ name }) => name)))
    expect(parse(JSON.stringify(channels))).toMatchObject({ success: true })
    const mailed = { ...defaults, 'email.server': 'localhost', 'email.from': 'gpu@example.org', channels }
    const opened = openChannels(mailed, surroundings)
    expect(opened.problems).toEqual(['TO_EMAILS (email.to) is empty: only owners of processes get mail'])
    expect(names(opened)).toEqual(['email', ...Object.keys(channels).filter((name) => name !== 'script')])
  })

  it.each([
    [{ team: { type: 5, url: 'https://x' } }, /^team\.type: /],
    [{ 'bad name': { type: 'slack', url: 'https://x' } }, /name of 1 to 40/],
    [{ team: 'slack' }, /^team: /],
    [['slack'], /expected channels by name/],
    ['slack', /expected channels by name/],
  ])('refuses %j by name and without repeating it', (value, expected) => {
    const result = parse(value)
    expect(result.error?.issues[0]?.message).toMatch(expected)
    expect(result.error?.issues[0]?.message).not.toContain('T0pSecret')
  })
})

describe('checkChannels', () => {
  it.each([
    [{ team: { type: 'slak', url: 'https://T0pSecret' } }, /^channels\.team\.type: expected one of email, slack, /],
    [{ team: { type: 'slack', url: 'hooks.slack.com/T0pSecret' } }, /^channels\.team\.url: expected an address/],
    [{ team: { type: 'slack', url: 'https://x', chanel: 'T0pSecret' } }, /^channels\.team: Unrecognized key: "chanel"/],
    [{ team: { type: 'slack' } }, /^channels\.team\.url: /],
    [{ c: { type: 'command', command: 'T0pSecret' } }, /^channels\.c\.command: /],
    [{ m: { type: 'email', to: ['T0pSecret'] } }, /^channels\.m\.to\.0: expected an e-mail address/],
  ])('refuses %j by name and without repeating it', (channels, expected) => {
    let said = ''
    try {
      openChannels({ ...defaults, channels }, surroundings)
    } catch (error) {
      said = (error as Error).message
    }
    expect(said).toMatch(expected)
    expect(said).not.toContain('T0pSecret')
    expect(() => checkChannels({ ...defaults, channels })).toThrow(expected)
  })
})

describe('openChannels', () => {
  it('has e-mail from its own keys, and nothing when nothing is configured', () => {
    expect(openChannels(defaults, surroundings)).toEqual({ channels: [], unusable: new Map(), disabled: [], problems: [] })
    const values = { ...defaults, 'email.server': 'localhost', 'email.from': 'gpu@example.org', 'email.to': ['ops@example.org'] }
    expect(names(openChannels(values, surroundings))).toEqual(['email'])
  })

  it('distinguishes channels that are off from those that cannot be used', () => {
    const channels = { off: { type: 'slack', url: 'env:NOT_THERE', enabled: false }, bad: { type: 'slack', url: 'env:NOT_THERE' } }
    const opened = openChannels({ ...defaults, channels }, surroundings)
    expect(opened.disabled).toEqual(['off'])
    expect([...opened.unusable]).toEqual([['bad', expect.stringContaining('NOT_THERE')]])
  })

  it('says what is missing and goes on with the others', () => {
    const values = {
      ...defaults,
      'email.to': ['ops@example.org'],
      channels: {
        a: { type: 'slack', url: 'env:NOT_THERE' },
        b: { type: 'slack', url: 'env:EMPTY' },
        c: { type: 'slack', url: 'file:/nonexistent/url' },
        d: { type: 'email', to: ['x@example.org'] },
        good: { type: 'slack', url: 'env:HOOK_URL' },
      },
    }
    const opened = openChannels(values, surroundings)
    expect(names(opened)).toEqual(['good'])
    expect(opened.problems).toMatchObject([
      expect.stringContaining('SMTP_SERVER (email.server) is not set'),
      expect.stringContaining('a.url: the variable NOT_THERE is not set'),
      expect.stringContaining('b.url: the variable EMPTY is not set'),
      expect.stringContaining('c.url: the file /nonexistent/url cannot be read (ENOENT)'),
      expect.stringContaining('d.server'),
    ])
  })

  it('reads a secret from a file', async () => {
    const server = await openHttpServer()
    writeFileSync(join(dir, 'url'), `${server.url}/from-file\n`)
    const opened = openChannels({ ...defaults, channels: { a: { type: 'slack', url: `file:${join(dir, 'url')}` } } }, surroundings)
    await opened.channels[0]?.deliver(message, new AbortController().signal)
    expect(server.requests[0]?.url).toBe('/from-file')
    await server.close()
  })

  it('has web push when the server shares its subscriptions', () => {
    const push = new PushSubscriptions(dir)
    expect(names(openChannels(defaults, { ...surroundings, push }))).toEqual(['webpush'])
    const named = { ...defaults, channels: { browser: { type: 'webpush', keep_hours: 1 } } }
    expect(names(openChannels(named, { ...surroundings, push }))).toEqual(['browser'])
  })

  it('says why there is no web push where its keys cannot be kept', () => {
    expect([...openChannels(defaults, { ...surroundings, push: null }).unusable]).toEqual([
      ['webpush', expect.stringContaining('alerts.dir')],
    ])
  })
})

describe('masking', () => {
  it('hides what is secret in a configuration and leaves the rest readable', () => {
    const shown = maskSecrets({
      team: { type: 'slack', url: 'https://hooks.slack.com/services/T0pSecret' },
      am: { type: 'alertmanager', url: 'http://am:9093', password: 'T0pSecret', hold_hours: 24 },
      hook: {
        type: 'webhook',
        url: 'env:HOOK_URL',
        headers: { 'X-Anything': 'T0pSecret' },
        secret: 'T0pSecret',
        template: { a: '{{title}}' },
      },
      bot: { type: 'telegram', token: 'T0pSecret', chat: -100 },
      duty: { type: 'pagerduty', routing_key: 'T0pSecret' },
      run: { type: 'command', command: ['/usr/local/bin/notify', '--token', 'T0pSecret'] },
    })
    expect(JSON.stringify(shown)).not.toContain('T0pSecret')
    expect(shown).toMatchObject({
      team: { type: 'slack', url: 'https://hooks.slack.com/********' },
      am: { url: 'http://am:9093', hold_hours: 24 },
      hook: { url: 'env:HOOK_URL', template: { a: '{{title}}' } },
      bot: { chat: -100 },
      run: { command: ['/usr/local/bin/notify', '********', '********'] },
    })
  })

  it('takes a secret out of a text in all its dresses', () => {
    const redact = redactor(['p@ss"word/1', null, 'abc'])
    const text = `p@ss"word/1 ${encodeURIComponent('p@ss"word/1')} ${btoa('p@ss"word/1')} ${JSON.stringify('p@ss"word/1')} abc`
    expect(redact(text)).toBe('******** ******** ******** "********" abc')
  })
})
