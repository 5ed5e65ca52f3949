/** A refusal that passes: the alert arrives after it, people learn of it meanwhile, and it holds up nothing else. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { HOUR, MINUTE, NOON, PretendChannel, pretendWorld, SECOND, temporaryDir, type World } from '../src/alerts/pretend-world.contract.ts'
import { email } from '../src/channels/email.ts'
import { openHttpServer } from '../src/channels/http-stand.fixture.ts'
import { webhook } from '../src/channels/webhook.ts'
import type { Channel } from '../src/core/alert-contract.ts'
import { openMailbox } from './mailbox.ts'

const env = { env: {}, stateDir: '/nonexistent' }

interface Receiver {
  readonly channel: Channel
  refuse(): void
  repair(): void
  taken(): number
}

async function webServer(status: number): Promise<Receiver> {
  const server = await openHttpServer()
  onTestFinished(() => server.close())
  let refusals = 0
  const answer = { status, body: 'the door is closed', headers: { location: 'http://127.0.0.1:9/' } }
  return {
    channel: webhook.open('hook', { url: `${server.url}/alerts` }, env),
    refuse: () => Object.assign(server, { answer }),
    repair() {
      refusals = server.requests.length
      server.answer = { status: 200, body: 'thanks' }
    },
    taken: () => server.requests.length - refusals,
  }
}

async function mailServer(): Promise<Receiver> {
  const box = await openMailbox()
  onTestFinished(() => box.close())
  const options = { server: '127.0.0.1', port: box.port, from: 'gpu@example.org', to: ['ops@example.org'], tls: 'none' }
  return {
    channel: email.open('mail', options, env),
    refuse: () => Object.assign(box, { refusal: { code: 550, words: 'the door is closed' } }),
    repair: () => Object.assign(box, { refusal: null }),
    taken: () => box.mails.length,
  }
}

function worldOf(channel: Channel, pager: PretendChannel, dir: string | null = null, at = NOON): World {
  const channels = new Map<string, Channel>([
    [channel.name, channel],
    [pager.name, pager],
  ])
  return pretendWorld({ dir, at, more: { channels } })
}

const problemOf = (world: World, name: string) => world.alerts.health().channels.find(({ channel }) => channel === name)?.problem

describe.each([
  ['404', () => webServer(404)],
  ['403', () => webServer(403)],
  ['301', () => webServer(301)],
  ['550', mailServer],
])('a receiver that refuses with %s for a while', (code, open) => {
  it.each([5 * SECOND, 25 * MINUTE])('gets the alert within a minute of the repair after %i ms', async (refusedMs) => {
    const receiver = await open()
    receiver.refuse()
    const { name } = receiver.channel
    const pager = new PretendChannel('pager')
    const world = worldOf(receiver.channel, pager)
    world.say('nan', { severity: 'critical' })
    await world.alerts.sweep()
    await world.pass(refusedMs, 5 * SECOND)
    expect(world.alerts.list()).toMatchObject([{ told: ['pager'], waiting: [name] }])
    expect(problemOf(world, name)).toMatch(new RegExp(`${code}.*the door is closed`))
    expect(world.alerts.health().state).toBe('degraded')
    expect(pager.said()).toEqual(['nan firing', `channel_refused|channel=${name} firing`])
    expect(pager.got[1]?.alerts[0]?.finding.message).toMatch(new RegExp(`^${name} refuses alerts: .*${code}.*the door is closed`))
    receiver.repair()
    await world.pass(MINUTE, 5 * SECOND)
    expect(receiver.taken()).toBe(1)
    expect(world.alerts.list()).toMatchObject([{ told: [name, 'pager'], waiting: [] }])
    expect(problemOf(world, name)).toBe(null)
    expect(world.alerts.health().state).toBe('ok')
    await world.pass(MINUTE, 5 * SECOND)
    expect(pager.said()).toEqual(['nan firing', `channel_refused|channel=${name} firing`, `channel_refused|channel=${name} resolved`])
  })
})

describe('a refused message', () => {
  const refusal = { ok: false, retry: false, reason: '550 no such user' } as const

  it('does not hold up the others', async () => {
    const mail = new PretendChannel('mail')
    const world = worldOf(mail, new PretendChannel('pager'))
    mail.answer = (message) => (message.alerts.some(({ fingerprint }) => fingerprint === 'poison') ? refusal : { ok: true, answer: 'ok' })
    world.say('poison', { severity: 'critical' })
    await world.pass(MINUTE)
    world.say('fine', { severity: 'critical' })
    await world.alerts.sweep()
    expect(mail.said().filter((said) => said.includes('fine'))).toEqual(['fine firing'])
    expect(problemOf(world, 'mail')).toBe(refusal.reason)
  })

  it('arrives within a minute of a repair during which the server was down', async () => {
    const mail = new PretendChannel('mail')
    const world = worldOf(mail, new PretendChannel('pager'))
    mail.answer = () => refusal
    world.say('nan', { severity: 'critical' })
    await world.pass(20 * MINUTE, SECOND)
    mail.goDown()
    await world.pass(2 * MINUTE, SECOND)
    expect(world.alerts.health().state).toBe('degraded')
    mail.goUp()
    await world.pass(MINUTE, SECOND)
    expect(mail.said()).toEqual(['nan firing'])
    expect(world.log.lines.filter(({ level }) => level === 'error').length).toBe(1)
  })

  it('is kept over a restart, and tried again at once after it', async () => {
    const dir = await temporaryDir()
    const mail = new PretendChannel('mail')
    const pager = new PretendChannel('pager')
    mail.answer = () => refusal
    const before = worldOf(mail, pager, dir)
    before.say('nan', { severity: 'critical' })
    await before.pass(10 * MINUTE)
    await before.alerts.close()
    const after = worldOf(mail, pager, dir, NOON + HOUR)
    expect(problemOf(after, 'mail')).toBe(refusal.reason)
    mail.goUp()
    await after.alerts.sweep()
    expect(mail.said()).toEqual(['nan firing'])
    await after.pass(MINUTE)
    expect(pager.said()).toEqual(['nan firing', 'channel_refused|channel=mail firing', 'channel_refused|channel=mail resolved'])
  })

  it('arrives late when its alert ended meanwhile', async () => {
    const mail = new PretendChannel('mail')
    const world = worldOf(mail, new PretendChannel('pager'))
    mail.answer = () => refusal
    world.say('nan', { severity: 'critical' })
    await world.pass(MINUTE)
    world.clear('nan')
    await world.pass(5 * MINUTE)
    mail.goUp()
    await world.pass(MINUTE)
    expect(mail.said()).toEqual(['nan late'])
  })

  it('arrives at every channel where all of them refused it', async () => {
    const mail = new PretendChannel('mail')
    const pager = new PretendChannel('pager')
    const world = worldOf(mail, pager)
    mail.answer = () => refusal
    pager.answer = () => refusal
    world.say('nan', { severity: 'critical' })
    await world.pass(10 * MINUTE)
    mail.goUp()
    pager.goUp()
    await world.pass(2 * MINUTE)
    expect(mail.said()).toContain('nan firing')
    expect(pager.said()).toContain('nan firing')
    expect(world.alerts.health()).toMatchObject({ state: 'ok', spoolDepth: 0 })
  })

  it('is given up, loudly, where it can never arrive', async () => {
    const channel = email.open('mail', { server: '127.0.0.1', port: 9, from: 'gpu@example.org', to: [], tls: 'none' }, env)
    const pager = new PretendChannel('pager')
    const world = worldOf(channel, pager)
    world.say('nan', { severity: 'critical' })
    await world.alerts.sweep()
    await world.pass(MINUTE)
    expect(world.alerts.list()).toMatchObject([{ told: ['pager'], waiting: [] }])
    expect(problemOf(world, 'mail')).toContain('no recipient')
    expect(world.alerts.health().state).toBe('degraded')
    expect(world.log.lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^mail gave up an alert: there is no recipient/),
    ])
    expect(pager.got[1]?.alerts[0]?.finding.message).toMatch(/^mail gave up an alert: there is no recipient/)
  })
})
