import { describe, expect, it } from 'vitest'
import { group, HOSTILE, hostile, late, message, resolved, test } from './alert-message.fixture.ts'
import { alertmanager, alertmanagerAlerts } from './alertmanager.ts'
import { channelContract } from './channel.contract.ts'
import { discord, discordBody } from './discord.ts'
import { httpStand, openHttpServer } from './http-stand.fixture.ts'
import { ntfy, ntfyBody } from './ntfy.ts'
import { pagerduty, pagerdutyEvents } from './pagerduty.ts'
import { pushover, pushoverBody } from './pushover.ts'
import { slack, slackBody } from './slack.ts'
import { judgeTeams, teams, teamsBody } from './teams.ts'
import { telegram, telegramBody } from './telegram.ts'

const SECRET = 'T0pSecret-a1b2c3d4e5'

channelContract(
  'slack',
  httpStand(slack, (url) => ({ url: `${url}/services/T000/B000/${SECRET}` }), [SECRET]),
)
channelContract(
  'discord',
  httpStand(discord, (url) => ({ url: `${url}/api/webhooks/1/${SECRET}` }), [SECRET]),
)
channelContract(
  'telegram',
  httpStand(telegram, (url) => ({ url, token: `12345:${SECRET}`, chat: -100 }), [SECRET]),
)
channelContract(
  'teams',
  httpStand(teams, (url) => ({ url: `${url}/workflows/x?sig=${SECRET}` }), [SECRET]),
)
channelContract(
  'ntfy',
  httpStand(ntfy, (url) => ({ url, topic: 'my-private-topic', token: SECRET }), [SECRET, 'my-private-topic']),
)
channelContract(
  'pushover',
  httpStand(pushover, (url) => ({ url, token: SECRET, user_key: 'u5erK3yu5erK3y' }), [SECRET, 'u5erK3yu5erK3y']),
)
channelContract(
  'pagerduty',
  httpStand(pagerduty, (url) => ({ url, routing_key: SECRET }), [SECRET]),
)
channelContract(
  'alertmanager',
  httpStand(alertmanager, (url) => ({ url: `${url}/am/`, user: 'me', password: SECRET }), [SECRET]),
)

const all = [message, resolved, late, test, group, hostile]
const stop = new AbortController().signal

describe('slack', () => {
  it('has text from outside in plain_text only, within the limits', () => {
    for (const what of all) {
      const body = slackBody(what)
      const json = JSON.stringify(body)
      expect(json).not.toMatch(/<!everyone>|<@U1>|<script/)
      const blocks = body.attachments[0]?.blocks ?? []
      expect(blocks.length).toBeLessThanOrEqual(50)
      const marked = JSON.stringify(blocks.filter((block) => block.type === 'context'))
      expect(marked).not.toMatch(/\*\*bold|@everyone/)
    }
  })
})

describe('discord', () => {
  it('mentions nobody and stays within the limits', () => {
    for (const what of all) {
      const { allowed_mentions, embeds } = discordBody(what)
      expect(allowed_mentions).toEqual({ parse: [] })
      const [embed] = embeds
      expect(embed?.title.length).toBeLessThanOrEqual(256)
      expect(embed?.description.length).toBeLessThanOrEqual(4096)
      expect(embed?.fields.length).toBeLessThanOrEqual(25)
      expect(JSON.stringify(embed).length).toBeLessThan(6000)
      expect(embed?.description).not.toMatch(/@everyone|(?<!\\)\*\*bold|(?<!\\)\[click/)
    }
  })

  it('asks for the answer', async () => {
    const server = await openHttpServer()
    await discord.open('d', { url: `${server.url}/api/webhooks/1/x?thread_id=5` }, { env: {}, stateDir: '/' }).deliver(message, stop)
    expect(server.requests[0]?.url).toBe('/api/webhooks/1/x?thread_id=5&wait=true')
    await server.close()
  })
})

describe('telegram', () => {
  it('posts to the bot with its text escaped and short enough', async () => {
    for (const what of all) {
      const { text } = telegramBody(what)
      expect(text.replace(/<[^>]+>/g, '').length).toBeLessThanOrEqual(4096)
      expect(text.match(/<(?!\/?(b|a)\b)/g)).toBeNull()
    }
    const server = await openHttpServer()
    const channel = telegram.open('t', { url: server.url, token: '12345:abc-DEF_g', chat: '@ops', topic: 7 }, { env: {}, stateDir: '/' })
    await channel.deliver(message, stop)
    expect(server.requests[0]?.url).toBe('/bot12345:abc-DEF_g/sendMessage')
    expect(JSON.parse(server.requests[0]?.body.toString() ?? '')).toMatchObject({
      chat_id: '@ops',
      message_thread_id: 7,
      parse_mode: 'HTML',
    })
    await server.close()
  })
})

describe('teams', () => {
  it('has text from outside in text runs only', () => {
    const { body, actions } = teamsBody(hostile).attachments[0]?.content ?? { body: [], actions: [] }
    expect(body.every((block) => block.type === 'RichTextBlock')).toBe(true)
    expect(actions.every(({ url }) => url.startsWith('http://box/'))).toBe(true)
  })

  it('sees the failure that the old connectors hide in a 200', () => {
    const answer = {
      host: 'x',
      status: 200,
      text: 'Webhook message delivery failed with error: … returned HTTP error 429',
      retryAfter: null,
    }
    expect(judgeTeams(answer)).toMatchObject({ ok: false, retry: true })
    expect(judgeTeams({ ...answer, text: '1' })).toMatchObject({ ok: true })
  })
})

describe('ntfy', () => {
  it('fits into 4096 bytes and rings by severity', () => {
    for (const what of all) expect(Buffer.byteLength(ntfyBody(what).message)).toBeLessThanOrEqual(4096)
    expect(ntfyBody(message)).toMatchObject({ priority: 5, click: 'http://box:4780/#/alerts' })
    expect(ntfyBody(resolved)).toMatchObject({ priority: 3, tags: ['white_check_mark'] })
  })
})

describe('pushover', () => {
  it('keeps the limits, and rings until taken only where that was asked for', () => {
    for (const what of all) {
      const body = pushoverBody(what, false)
      expect(body.title.length).toBeLessThanOrEqual(250)
      expect(body.message.length).toBeLessThanOrEqual(1024)
      expect(body.message).not.toBe('')
    }
    expect(pushoverBody(message, false)).toMatchObject({ priority: 1 })
    expect(pushoverBody(message, true)).toMatchObject({ priority: 2, retry: 60, expire: 3600 })
    expect(pushoverBody(resolved, true)).toMatchObject({ priority: -1 })
  })
})

describe('pagerduty', () => {
  it('opens and closes one incident per alert', () => {
    const [trigger] = pagerdutyEvents(message) as [{ dedup_key: string }]
    expect(trigger).toMatchObject({ event_action: 'trigger', payload: { severity: 'critical', source: 'box', class: 'memory_leak' } })
    expect(pagerdutyEvents(resolved)).toEqual([{ event_action: 'resolve', dedup_key: trigger.dedup_key }])
    expect(pagerdutyEvents(late)).toMatchObject([{ event_action: 'trigger', payload: { severity: 'info' } }, { event_action: 'resolve' }])
    expect(pagerdutyEvents(test)).toMatchObject([{ event_action: 'trigger' }, { event_action: 'resolve' }])
    expect(pagerdutyEvents(group)).toHaveLength(30)
  })

  it('keeps keys short and distinct', () => {
    const long = (end: string) =>
      pagerdutyEvents({ ...message, alerts: message.alerts.map((one) => ({ ...one, fingerprint: 'x'.repeat(300) + end })) })
    const [a, b] = [long('a'), long('b')].map((events) => (events[0] as { dedup_key: string }).dedup_key)
    expect(a?.length).toBeLessThanOrEqual(255)
    expect(a).not.toBe(b)
  })

  it('adds the line that became known to the incident that is open', async () => {
    const server = await openHttpServer()
    const channel = pagerduty.open('p', { url: server.url, routing_key: 'k3y' }, { env: {}, stateDir: '/' })
    const line = 'train.py:77 in remember'
    const known = message.alerts.map((one) => ({
      ...one,
      status: 'repeat' as const,
      finding: { ...one.finding, message: `${one.finding.message}, held by ${line}`, evidence: { ...one.finding.evidence, line } },
    }))
    for (const what of [message, { ...message, id: `${message.id}-2`, isFirst: false, alerts: known }, resolved])
      expect(await channel.deliver(what, stop)).toMatchObject({ ok: true })
    await server.close()
    const events = server.requests.map(({ body }) => JSON.parse(body.toString()))
    expect(events.map(({ event_action }) => event_action)).toEqual(['trigger', 'trigger', 'resolve'])
    expect(new Set(events.map(({ dedup_key }) => dedup_key)).size).toBe(1)
    expect(events[0].payload.summary).not.toContain(line)
    expect(events[1].payload).toMatchObject({ summary: expect.stringContaining(line), custom_details: { evidence: { line } } })
  })

  it('goes on with the rest only when one was taken', async () => {
    const server = await openHttpServer('later')
    const channel = pagerduty.open('p', { url: server.url, routing_key: 'k3y' }, { env: {}, stateDir: '/' })
    expect(await channel.deliver(group, stop)).toMatchObject({ ok: false, retry: true })
    expect(server.requests).toHaveLength(1)
    await server.close()
  })
})

describe('alertmanager', () => {
  const HOUR = 3_600_000
  type Posted = { labels: Record<string, string>; startsAt: string; endsAt: string; annotations: Record<string, string> }
  const posted = (what: typeof message) => alertmanagerAlerts(what, 24 * HOUR, { cluster: 'a' }) as Posted[]

  it('is active until held no longer, and then ends under the same labels', () => {
    const [fired] = posted(message)
    expect(posted(message)).toHaveLength(1)
    expect(Date.parse(fired?.endsAt ?? '')).toBe(message.at + 24 * HOUR)
    const ended = posted(resolved).find(({ labels }) => labels.severity === 'critical')
    expect(ended?.labels).toEqual(fired?.labels)
    expect(Date.parse(ended?.endsAt ?? '')).toBeLessThanOrEqual(message.at)
    expect(fired?.labels).toMatchObject({ alertname: 'gpuwarden_memory_leak', cluster: 'a', host: 'box' })
    expect(fired?.annotations).toMatchObject({ owner: 'alice', gpu: '0 NVIDIA H200 (GPU-5f2c)' })
  })

  it('ends the former severity when it changes', () => {
    const worse = posted({ ...message, isFirst: false })
    expect(worse.map(({ labels, endsAt }) => [labels.severity, Date.parse(endsAt) > message.at])).toEqual([
      ['info', false],
      ['warning', false],
      ['critical', true],
    ])
  })

  it('keeps a late one open long enough to be noticed', () => {
    expect(Date.parse(posted(late)[0]?.endsAt ?? '')).toBeGreaterThan(late.at)
  })

  it('never says that something ended before it began', () => {
    for (const what of all) for (const { startsAt, endsAt } of posted(what)) expect(startsAt <= endsAt).toBe(true)
  })

  it('posts to the API below the given path, with its login', async () => {
    const server = await openHttpServer()
    await alertmanager
      .open('a', { url: `${server.url}/am/`, user: 'me', password: 'pw' }, { env: {}, stateDir: '/' })
      .deliver(message, stop)
    expect(server.requests[0]?.url).toBe('/am/api/v2/alerts')
    expect(server.requests[0]?.headers.authorization).toBe(`Basic ${btoa('me:pw')}`)
    await server.close()
  })
})

describe('hostile text', () => {
  it('is really in the fixture', () => {
    expect(HOSTILE).toContain('\r\nBcc:')
    expect(JSON.stringify(slackBody(hostile))).toContain('evil@example.org')
  })
})
