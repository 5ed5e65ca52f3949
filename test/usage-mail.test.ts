/** The mails about usage, through the real outbox to a real mail server: each once, whatever happens in between. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../src/agent/config.ts'
import { checkUsageMail, UsageMail } from '../src/agent/usage-mail.ts'
import { HOUR, MINUTE, pretendWorld, temporaryDir, type World } from '../src/alerts/pretend-world.contract.ts'
import { email } from '../src/channels/email.ts'
import type { Channel } from '../src/core/alert-contract.ts'
import type { Log } from '../src/core/kinds.ts'
import { cardWith } from '../src/core/model.fixture.ts'
import { type Booking, tickAt } from '../src/usage/month.fixture.ts'
import { duePeriod, periodText } from '../src/usage/period.ts'
import { createUsage, type Usage } from '../src/usage/usage.ts'
import { type Mailbox, openMailbox } from './mailbox.ts'

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => silent }
/** A Monday morning, local time. */
const MONDAY = new Date(2026, 10, 16, 8, 30).getTime()
const OWNERS = { ada: 'ada@example.org', ben: 'ben@example.org', nobody: 'root@example.org', idle: 'idle@example.org' }
const values = {
  ...loadConfig({ env: {} }).values,
  'usage.mail': 'weekly' as const,
  'usage.mail_channel': 'mail',
  'usage.price_per_hour': 2,
  'alerts.owners': OWNERS,
}

/** Last week: ada computes ten hours, ben holds a card for ten and computes nothing, eve has no address. */
async function lastWeek(): Promise<Usage> {
  const cards = [cardWith(0), cardWith(1), cardWith(2)]
  const start = new Date(2026, 10, 11, 9).getTime()
  const usage = createUsage({ dir: null, settings: values, intervalMs: MINUTE, log: silent, now: () => MONDAY, saveMs: 0 })
  onTestFinished(() => usage.close())
  const held = (gpu: number, user: string, utilization: number): [string, Booking] => [
    `GPU-${gpu}`,
    { gpu: `GPU-${gpu}`, user, job: 'slurm:1', pid: gpu + 1, from: start, to: start + DAY, utilization, memoryGib: 40 },
  ]
  usage.accept({ type: 'devices', devices: cards })
  const bookings = new Map([held(0, 'ada', 0.9), held(1, 'ben', 0), held(2, 'eve', 0.5)])
  for (let at = start; at <= start + 10 * HOUR; at += MINUTE) usage.accept(tickAt(cards, bookings, at))
  return usage
}
const DAY = 24 * HOUR

async function mailbox(): Promise<Mailbox> {
  const box = await openMailbox()
  onTestFinished(() => box.close())
  return box
}

function worldOf(box: Mailbox, dir: string, at = MONDAY): World {
  const options = { server: '127.0.0.1', port: box.port, from: 'gpu@example.org', to: ['ops@example.org'], tls: 'none' }
  const channel = email.open('mail', options, { env: {}, stateDir: dir })
  return pretendWorld({ dir, at, more: { channels: new Map<string, Channel>([['mail', channel]]) } })
}

function mailOf(world: World, usage: Usage, more: object = {}): UsageMail {
  const mail = new UsageMail({
    values: { ...values, ...more },
    usage,
    alerts: world.alerts,
    host: 'box',
    log: world.log,
    now: () => world.at,
  })
  onTestFinished(() => mail.close())
  return mail
}

const body = (text: string) => text.replaceAll('=\r\n', '').replaceAll('=\n', '')

describe('mails about usage', () => {
  it('go to the owner of the server, and to each user with an address, once', async () => {
    const [box, dir, usage] = [await mailbox(), await temporaryDir(), await lastWeek()]
    const world = worldOf(box, dir)
    const mail = mailOf(world, usage)
    await mail.look()
    await world.pass(MINUTE)
    await mail.look()
    await world.pass(MINUTE)
    expect(box.mails.map(({ to, subject }) => [to.join(), subject])).toEqual([
      ['ops@example.org', '[gpuwarden] GPU usage of box, 9 to 15 November 2026'],
      ['ada@example.org', '[gpuwarden] Your GPU usage on box, 9 to 15 November 2026'],
      ['ben@example.org', '[gpuwarden] Your GPU usage on box, 9 to 15 November 2026'],
    ])
    const [owner = '', ada = '', ben = ''] = box.mails.map(({ text }) => body(text))
    expect(owner).toMatch(/Held: 30\.0 of 30\.0 GPU-hours/)
    expect(owner).toMatch(/eve +10\.0 +33% +50%/)
    expect(ada).toMatch(/good use/)
    expect(ada).not.toMatch(/could save/)
    expect(ben).toMatch(/10\.0 GPU-hours \(\$19\.9\d\) held memory and computed nothing/)
    await world.alerts.close()
  })

  it('are not sent again after a restart, nor lost by a mail server that is away', async () => {
    const [box, dir, usage] = [await mailbox(), await temporaryDir(), await lastWeek()]
    box.refusal = { code: 451, words: 'come back later' }
    const first = worldOf(box, dir)
    await mailOf(first, usage).look()
    await first.pass(2 * MINUTE)
    expect(box.mails).toEqual([])
    await first.alerts.close()
    box.refusal = null
    const second = worldOf(box, dir, MONDAY + HOUR)
    await mailOf(second, usage).look()
    await second.pass(2 * HOUR)
    expect(box.mails.map(({ to }) => to.join()).sort()).toEqual(['ada@example.org', 'ben@example.org', 'ops@example.org'])
    await second.alerts.close()
    const third = worldOf(box, dir, MONDAY + DAY)
    await mailOf(third, usage).look()
    await third.pass(HOUR)
    expect(box.mails).toHaveLength(3)
    await third.alerts.close()
  })

  it('go to the addresses that are set, and not at all for a week in which nothing was counted', async () => {
    const [box, dir, usage] = [await mailbox(), await temporaryDir(), await lastWeek()]
    const empty = worldOf(box, dir, MONDAY - 7 * DAY)
    await mailOf(empty, usage).look()
    await empty.pass(MINUTE)
    expect(box.mails).toEqual([])
    await empty.alerts.close()
    const world = worldOf(box, dir)
    await mailOf(world, usage, { 'usage.mail_to': ['boss@example.org'] }).look()
    await world.pass(MINUTE)
    expect(box.mails[0]?.to).toEqual(['boss@example.org'])
    await world.alerts.close()
  })

  it('need a channel that sends mail', () => {
    expect(() => checkUsageMail({ ...values, 'usage.mail': 'off', 'usage.mail_channel': 'slack' })).not.toThrow()
    expect(() => checkUsageMail({ ...values, channels: { mail: { type: 'email' } } })).not.toThrow()
    expect(() => checkUsageMail({ ...values, channels: { mail: { type: 'slack' } } })).toThrow(
      /channel of type email; got "mail" of type slack/,
    )
  })
})

describe('the time that a mail is about', () => {
  const at = (month: number, day: number, hour: number) => new Date(2026, month - 1, day, hour).getTime()

  it('is the last whole week from Monday on, or the last whole month', () => {
    expect(periodText(duePeriod('weekly', 8, at(11, 16, 8)))).toBe('9 to 15 November 2026')
    expect(periodText(duePeriod('weekly', 8, at(11, 16, 7)))).toBe('2 to 8 November 2026')
    expect(periodText(duePeriod('weekly', 8, at(11, 22, 23)))).toBe('9 to 15 November 2026')
    expect(periodText(duePeriod('weekly', 0, at(1, 1, 0)))).toBe('22 to 28 December 2025')
    expect(periodText(duePeriod('weekly', 8, at(11, 2, 9)))).toBe('26 October to 1 November 2026')
    expect(periodText(duePeriod('monthly', 8, at(3, 1, 8)))).toBe('1 to 28 February 2026')
    expect(periodText(duePeriod('monthly', 8, at(3, 1, 7)))).toBe('1 to 31 January 2026')
  })
})
