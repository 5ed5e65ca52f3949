import { describe, expect, it } from 'vitest'
import {
  GIB,
  gpuSample,
  HOUR,
  hostSample,
  MINUTE,
  NOON,
  pretendWorld,
  SECOND,
  sourceHealth,
  tickOf,
  type World,
  type WorldOptions,
} from './pretend-world.contract.ts'

/** Ticks every ten seconds, with a share of memory in use. */
async function hold(world: World, ratio: number, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10 * SECOND) {
    const sample = gpuSample('GPU-0', world.at, { memoryUsedBytes: ratio * 24 * GIB, memoryTotalBytes: 24 * GIB })
    world.alerts.accept({ type: 'tick', tick: tickOf(world.at, [sample]) })
    await world.pass(10 * SECOND)
  }
}

const stateOf = (world: World, print: string) => world.alerts.list().find((alert) => alert.fingerprint === print)?.state ?? 'inactive'
const MEMORY = 'memory|gpu=GPU-0'

describe('level rules', () => {
  it('warn of memory only when it holds, and clear only below the second threshold', async () => {
    const world = pretendWorld()
    await hold(world, 0.85, 9 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe('pending')
    await hold(world, 0.75, MINUTE)
    expect(stateOf(world, MEMORY)).toBe('inactive')
    await hold(world, 0.8, 11 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe('firing')
    expect(world.channel.got[0]?.alerts[0]?.finding).toMatchObject({
      detector: 'memory',
      severity: 'warning',
      subject: { host: 'box', gpu: 'GPU-0', gpuIndex: 0 },
      message: 'GPU 0: 80% of its memory is in use, at or above 80%.',
    })
    await hold(world, 0.77, 5 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe('firing')
    await hold(world, 0.5, 3 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe('resolved')
    expect(world.channel.said()).toEqual([`${MEMORY} firing`, `${MEMORY} resolved`])
  })

  it.each<[string, WorldOptions, string]>([
    ['take another threshold', { more: { memoryThresholdRatio: 0.95 } }, 'inactive'],
    ['take their own threshold and wait', { settings: { 'alerts.rules.memory': { threshold: 0.5, for_seconds: 10 } } }, 'firing'],
    ['are switched off by one line', { settings: { 'alerts.rules.memory': false } }, 'inactive'],
    ['stand back where a detector says the same', { more: { detectors: ['memory_pressure'] } }, 'inactive'],
  ])('%s', async (_name, options, wanted) => {
    const world = pretendWorld(options)
    await hold(world, 0.9, 5 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe(wanted)
    await hold(world, 0.9, 6 * MINUTE)
    expect(stateOf(world, MEMORY)).toBe(wanted)
  })

  it('let the detector speak for them, as severe as they are, unless they have thresholds of their own or are off', async () => {
    const level = { detector: 'memory_pressure', severity: 'info' as const, since: NOON - HOUR }
    const [print, other] = ['memory_pressure|level|gpu=GPU-0', 'memory_pressure|gpu=GPU-0']
    const told = async (settings: WorldOptions['settings']) => {
      const world = pretendWorld({ more: { detectors: ['memory_pressure'] }, settings: settings ?? {} })
      world.say(print, level)
      world.say(other, { detector: 'memory_pressure' })
      await hold(world, 0.99, 12 * MINUTE)
      return world.channel.said()
    }
    expect(await told({})).toEqual([`${print} firing, ${other} firing`])
    expect(await told({ 'alerts.rules.memory': false })).toEqual([`${other} firing`])
    expect(await told({ 'alerts.rules.memory': { threshold: 0.98 } })).toEqual([`${other} firing`, `${MEMORY} firing`])
  })

  it('say nothing where the device cannot tell', async () => {
    const world = pretendWorld({ settings: { 'alerts.rules.memory': { for_seconds: 0 } } })
    const sample = gpuSample('GPU-0', world.at, { memoryUsedBytes: null, memoryTotalBytes: 24 * GIB })
    world.alerts.accept({ type: 'tick', tick: tickOf(world.at, [sample]) })
    expect(world.alerts.list()).toEqual([])
  })

  it('warn of a disk that is nearly full, and louder when it is full', async () => {
    const world = pretendWorld()
    const disk = async (free: number, ms: number) => {
      for (let passed = 0; passed < ms; passed += 10 * SECOND) {
        world.alerts.accept({ type: 'tick', tick: tickOf(world.at, [], hostSample(world.at, free), 'host') })
        await world.pass(10 * SECOND)
      }
    }
    await disk(0.04, 3 * MINUTE)
    await disk(0.005, MINUTE)
    await disk(0.06, 3 * MINUTE)
    expect(stateOf(world, 'disk|host=box')).toBe('firing')
    await disk(0.3, 3 * MINUTE)
    expect(world.channel.got.map(({ severity, alerts }) => `${severity} ${alerts[0]?.status}`)).toEqual([
      'warning firing',
      'critical firing',
      'warning resolved',
    ])
  })

  it('notice a source that calls itself well and sends nothing', async () => {
    const world = pretendWorld()
    world.state.sources = [
      sourceHealth(),
      sourceHealth({ source: 'slow', intervalMs: HOUR }),
      sourceHealth({ source: 'dead', state: 'not_responding' }),
      sourceHealth({ source: 'film', provenance: 'replay' }),
    ]
    await world.pass(3 * MINUTE)
    expect(world.channel.said()).toEqual(['source_stale|source=nvidia firing'])
    world.state.sources = [sourceHealth({ lastSampleAt: world.at + 3 * MINUTE })]
    await world.pass(3 * MINUTE)
    expect(world.channel.said().at(-1)).toBe('source_stale|source=nvidia resolved')
  })
})

describe('rules over findings', () => {
  it('wait five minutes for a throttle or a power brake, and not at all for an XID', async () => {
    const world = pretendWorld()
    world.say('t', { detector: 'throttle' })
    world.say('p', { detector: 'power_brake' })
    world.say('x', { detector: 'xid', severity: 'critical' })
    await world.pass(4 * MINUTE)
    expect(world.channel.said()).toEqual(['x firing'])
    await world.pass(2 * MINUTE)
    expect(world.channel.said()).toEqual(['x firing', 't firing, p firing'])
  })

  it('make the notice of heat a warning where the card does not know its limit', async () => {
    const world = pretendWorld()
    world.say('known', { detector: 'thermal', severity: 'info', evidence: { limit_known: true } })
    world.say('unknown', { detector: 'thermal', severity: 'info', evidence: { limit_known: false } })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['unknown firing'])
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
