import { describe, expect, it } from 'vitest'
import type { AlertView } from '../core/alert-contract.ts'
import { DAY, HOUR, MINUTE, NOON, pretendWorld, SECOND, temporaryDir, type World, type WorldOptions } from './pretend-world.contract.ts'

const stateOf = (world: World, print: string) => world.alerts.list().find((alert) => alert.fingerprint === print)?.state ?? 'inactive'

describe('rules', () => {
  it('wait as long as a detector asks for: five minutes for a throttle or a power brake, not at all for an XID', async () => {
    const world = pretendWorld()
    world.say('t', { detector: 'throttle' })
    world.say('p', { detector: 'power_brake' })
    world.say('x', { detector: 'xid', severity: 'critical' })
    await world.pass(4 * MINUTE)
    expect(world.channel.said()).toEqual(['x firing'])
    await world.pass(2 * MINUTE)
    expect(world.channel.said()).toEqual(['x firing', 't firing, p firing'])
  })

  it('wait a minute for a full disk and half a minute for a silent source', async () => {
    const world = pretendWorld({ settings: { 'alerts.group_seconds': 0 } })
    world.say('disk|host=box', { detector: 'disk' })
    world.say('source_stale|source=nvidia', { detector: 'source_stale' })
    await world.pass(20 * SECOND)
    expect(world.channel.said()).toEqual([])
    await world.pass(20 * SECOND)
    expect(world.channel.said()).toEqual(['source_stale|source=nvidia firing'])
    await world.pass(30 * SECOND)
    expect(world.channel.said()).toEqual(['source_stale|source=nvidia firing', 'disk|host=box firing'])
  })

  it('make the notice of heat a warning where the card does not know its limit', async () => {
    const world = pretendWorld()
    world.say('known', { detector: 'thermal', severity: 'info', evidence: { limit_known: true } })
    world.say('unknown', { detector: 'thermal', severity: 'info', evidence: { limit_known: false } })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['unknown firing'])
    expect(world.channel.got[0]?.severity).toBe('warning')
  })

  it('make the level of memory a warning, and switch it off without the other findings of its detector', async () => {
    const level = { detector: 'memory_pressure', severity: 'info' as const, since: NOON - HOUR }
    const [print, other] = ['memory_pressure|level|gpu=GPU-0', 'memory_pressure|gpu=GPU-0']
    const told = async (choice: NonNullable<WorldOptions['settings']>['alerts.rules.memory']) => {
      const world = pretendWorld({ settings: { 'alerts.rules.memory': choice ?? true } })
      world.say(print, level)
      world.say(other, { detector: 'memory_pressure' })
      await world.pass(12 * MINUTE)
      return world.channel.got.flatMap(({ alerts }) => alerts.map(({ fingerprint, finding }) => `${fingerprint} ${finding.severity}`))
    }
    expect(await told(true)).toEqual([`${print} warning`, `${other} warning`])
    expect(await told(false)).toEqual([`${other} warning`])
    expect(await told({ severity: 'critical' })).toEqual([`${print} critical`, `${other} warning`])
    expect(await told({ for_seconds: 2 * 3600 })).toEqual([`${other} warning`])
  })

  it('show an alert as resolved as soon as its finding is over, and notify once it has stayed away', async () => {
    const dir = await temporaryDir()
    const settings = { 'alerts.keep_firing_seconds': 120, 'alerts.group_seconds': 0 }
    const world = pretendWorld({ dir, settings })
    const events: AlertView[] = []
    world.alerts.news.follow(({ alerts }) => void events.push(...alerts))
    world.say('x', { detector: 'xid', severity: 'critical' })
    await world.pass(MINUTE)
    world.clear('x', { detector: 'xid' })
    expect(stateOf(world, 'x')).toBe('resolved')
    expect(world.alerts.health().alerts).toMatchObject({ firing: 0, resolved: 1 })
    expect(world.alerts.list()[0]?.resolvedAt).toBe(world.at)
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['x firing'])
    await expect.poll(() => events.at(-1)?.state).toBe('resolved')
    world.say('x', { detector: 'xid', severity: 'critical' })
    expect([stateOf(world, 'x'), world.alerts.list()[0]?.resolvedAt]).toEqual(['firing', null])
    world.clear('x', { detector: 'xid' })
    await world.pass(3 * MINUTE)
    expect(world.channel.said()).toEqual(['x firing', 'x resolved'])
    world.say('y', { detector: 'loss_nan', severity: 'critical' })
    await world.pass(MINUTE)
    world.clear('y', { detector: 'loss_nan' })
    await world.alerts.close()
    const after = pretendWorld({ dir, settings, at: world.at + SECOND })
    expect(stateOf(after, 'y')).toBe('resolved')
  })

  it('make a loss that does not fall a warning once it has lasted half an hour, and only then', async () => {
    const world = pretendWorld()
    const flat = { detector: 'loss_plateau', severity: 'info' as const }
    world.say('short', flat)
    world.say('long', flat)
    await world.pass(20 * MINUTE)
    world.clear('short', flat)
    await world.pass(9 * MINUTE)
    expect(world.channel.said()).toEqual([])
    await world.pass(3 * MINUTE)
    expect(world.channel.said()).toEqual(['long firing'])
    expect(world.channel.got[0]?.severity).toBe('warning')
  })

  it('switch a detector off, change its severity, or leave it out', async () => {
    const world = pretendWorld({
      settings: { 'alerts.rules.xid': false, 'alerts.rules.ecc': { severity: 'critical' }, 'alerts.ignore': ['loss_plateau'] },
    })
    world.say('x', { detector: 'xid' })
    world.say('e', { detector: 'ecc' })
    world.say('l', { detector: 'loss_plateau' })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['e firing'])
    expect(world.channel.got[0]?.severity).toBe('critical')
    expect(world.at).toBe(NOON + MINUTE)
  })
})

describe('alerts that an earlier version made by itself', () => {
  const old = ['memory|gpu=GPU-0', 'disk|host=box', 'source_stale|source=nvidia'] as const
  const detectorOf = (print: string) => print.split('|')[0] ?? ''

  /** A journal with all three of them firing. */
  async function journal(): Promise<string> {
    const dir = await temporaryDir()
    const world = pretendWorld({ dir, more: { detectors: [] } })
    for (const print of old) world.say(print, { detector: detectorOf(print), since: NOON - DAY })
    await world.pass(2 * MINUTE)
    expect(world.channel.said()).toEqual([old.map((print) => `${print} firing`).join(', ')])
    await world.alerts.close()
    return dir
  }

  it('end at once where no detector has that name anymore, and the end is sent', async () => {
    const world = pretendWorld({ dir: await journal(), at: NOON + HOUR })
    expect(old.map((print) => stateOf(world, print))).toEqual(['firing', 'firing', 'firing'])
    await world.pass(3 * MINUTE)
    expect(old.map((print) => stateOf(world, print))).toEqual(['resolved', 'firing', 'firing'])
    expect(world.channel.said()).toEqual(['memory|gpu=GPU-0 resolved'])
    expect(world.channel.got[0]?.alerts[0]?.finding.message).toMatch(/^No longer watched since gpuwarden was restarted: /)
  })

  it('are the same alerts when their detectors see the problem again, and end when they do not', async () => {
    const world = pretendWorld({ dir: await journal(), at: NOON + HOUR })
    world.say('disk|host=box', { detector: 'disk' })
    await world.pass(50 * MINUTE)
    expect(world.alerts.list().find((alert) => alert.fingerprint === 'disk|host=box')).toMatchObject({
      state: 'firing',
      unconfirmed: false,
    })
    expect(stateOf(world, 'source_stale|source=nvidia')).toBe('resolved')
    expect(world.channel.said().filter((message) => message.includes('firing'))).toEqual([])
  })
})
