import { describe, expect, it } from 'vitest'
import { runWith } from '../core/model.fixture.ts'
import { createAlerts } from './alerts.ts'
import { parseMatcher } from './matcher.ts'
import {
  HOUR,
  MINUTE,
  NOON,
  PretendChannel,
  PretendState,
  pretendWorld,
  recordedLog,
  SECOND,
  settingsWith,
} from './pretend-world.contract.ts'

describe('alerts: from a finding to a message', () => {
  it('groups what fires together, sends it after the group wait, and sends the end in the same thread', async () => {
    const world = pretendWorld()
    world.say('a', { subject: { gpu: 'GPU-1', gpuIndex: 1 } })
    await world.pass(10 * SECOND)
    world.say('b')
    await world.pass(10 * SECOND)
    expect(world.channel.got).toEqual([])
    await world.pass(20 * SECOND)
    expect(world.channel.said()).toEqual(['a firing, b firing'])
    const first = world.channel.got[0]
    expect(first).toMatchObject({
      kind: 'alerts',
      host: 'box',
      severity: 'warning',
      isFirst: true,
      delayedMs: 0,
      suppressed: 0,
      simulated: false,
    })
    expect(first?.alerts[0]).toMatchObject({ gpuLabel: '1', gpuName: 'Test GPU', firedAt: NOON, resolvedAt: null })
    world.clear('a')
    await world.pass(3 * MINUTE)
    expect(world.channel.said()).toEqual(['a firing, b firing', 'a resolved'])
    const second = world.channel.got[1]
    expect(second?.threadId).toBe(first?.threadId)
    expect(second?.id).not.toBe(first?.id)
    expect(second?.isFirst).toBe(false)
    expect(second?.alerts[0]).toMatchObject({ resolvedAt: NOON + 40 * SECOND, finding: { state: 'resolved', message: 'a is over' } })
    expect(world.alerts.history()).toMatchObject([{ fingerprint: 'a', since: NOON, firedAt: NOON, resolvedAt: NOON + 40 * SECOND }])
  })

  it('sends what is critical at once, with what waits', async () => {
    const world = pretendWorld()
    world.say('a')
    world.say('b', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.channel.said()).toEqual(['b firing, a firing'])
    expect(world.channel.got[0]?.severity).toBe('critical')
  })

  it('does not repeat what is said again, but after the repeat interval says that it is still there', async () => {
    const world = pretendWorld()
    world.say('a')
    for (let minute = 0; minute < 60; minute++) {
      await world.pass(MINUTE, 30 * SECOND)
      world.say('a', { message: `still wrong at ${minute}` })
    }
    expect(world.channel.said()).toEqual(['a firing'])
    await world.pass(3 * HOUR + 2 * MINUTE, 30 * SECOND)
    expect(world.channel.said()).toEqual(['a firing', 'a repeat'])
    expect(world.channel.got[1]?.alerts[0]?.finding.message).toBe('still wrong at 59')
    expect(world.channel.got[1]?.threadId).toBe(world.channel.got[0]?.threadId)
    expect(world.channel.got[1]?.isFirst).toBe(false)
  })

  it('says at once when a problem gets worse, in its thread', async () => {
    const world = pretendWorld()
    world.say('a')
    await world.pass(MINUTE)
    world.say('a', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.channel.said()).toEqual(['a firing', 'a firing'])
    expect(world.channel.got[1]).toMatchObject({ severity: 'critical', isFirst: false, threadId: world.channel.got[0]?.threadId })
  })

  it('keeps information to itself unless a route wants it', async () => {
    const world = pretendWorld()
    world.say('a', { severity: 'info' })
    await world.pass(MINUTE)
    expect(world.channel.got).toEqual([])
    expect(world.alerts.list()).toMatchObject([{ fingerprint: 'a', state: 'firing' }])
    const wanted = pretendWorld({ settings: { 'alerts.routes': [{ channels: ['email'], severity: ['info'] }] } })
    wanted.say('a', { severity: 'info' })
    wanted.say('b')
    await wanted.pass(MINUTE)
    expect(wanted.channel.said()).toEqual(['a firing'])
  })

  it('refuses a route to a channel that does not exist, and names both', () => {
    const now = () => NOON
    const settings = settingsWith({ 'alerts.routes': [{ channels: ['email'] }, { channels: ['slak'] }] })
    const channels = new Map([['email', new PretendChannel()]])
    const create = () => createAlerts({ dir: null, channels, settings, state: new PretendState(now), log: recordedLog(), now })
    expect(create).toThrow('alerts.routes[1]: there is no channel "slak"')
  })

  it('accepts a route to a channel that is configured but could not be opened, and delivers elsewhere', async () => {
    const routes = [{ channels: ['broken', 'email'] }]
    const world = pretendWorld({ settings: { 'alerts.routes': routes }, more: { unusableChannels: ['broken'] } })
    world.say('a')
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['a firing'])
  })

  it('takes every kind of event, and closes twice', async () => {
    const world = pretendWorld()
    world.alerts.accept({ type: 'devices', devices: [] })
    world.alerts.accept({ type: 'health', health: [] })
    world.alerts.accept({ type: 'run', run: runWith() })
    world.alerts.accept({ type: 'steps', steps: [], provenance: 'live' })
    expect(world.alerts.name).toBe('alerts')
    expect(world.alerts.dropped()).toEqual({ count: 0, reason: null })
    await world.alerts.close()
    await world.alerts.close()
    world.say('after')
    expect(world.alerts.list()).toEqual([])
  })

  it('writes to the owner, to nobody else, and leaves the command line out', async () => {
    const world = pretendWorld({ settings: { 'alerts.owners': { ada: 'ada@example.org' } } })
    const none = { smRatio: null, memoryRatio: null, encoderRatio: null, decoderRatio: null, memoryUsedBytes: null }
    const blank = { parentPid: null, startedAt: null, uid: null, state: null, cpuRatio: null, residentBytes: null }
    const about = { executable: '/usr/bin/python3', command: ['python3', '--password=hunter2'], container: null, pod: null, slurmJob: null }
    world.state.known = [
      { pid: 7, gpu: 'GPU-0', type: 'compute', ...none, info: { pid: 7, user: 'ada', name: 'python3', ...blank, ...about } },
    ]
    world.say('a', { subject: { pid: 7, gpu: 'GPU-0' } })
    world.say('b', { subject: { user: 'bob' } })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['a firing', 'b firing'])
    expect(world.channel.got.map((message) => message.owners)).toEqual([['ada@example.org'], []])
    expect(world.channel.got[0]?.alerts[0]?.process?.info?.name).toBe('python3')
    expect(JSON.stringify(world.channel.got)).not.toContain('hunter2')
  })

  it('writes to who started the run, and knows it by its user', async () => {
    const routes = [{ channels: ['email'], user: ['ada'] }]
    const world = pretendWorld({ settings: { 'alerts.owners': { ada: 'ada@example.org' }, 'alerts.routes': routes } })
    const run = runWith({ startedAt: NOON })
    world.alerts.accept({ type: 'run', run: { ...run, id: 'of-ada', user: 'ada' } })
    world.alerts.accept({ type: 'run', run: { ...run, id: 'of-bob', user: 'bob' } })
    for (const id of ['of-ada', 'of-bob', 'unknown']) world.say(`loss_nan|run=${id}`, { detector: 'loss_nan', subject: { run: id } })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['loss_nan|run=of-ada firing'])
    expect(world.channel.got[0]).toMatchObject({ owners: ['ada@example.org'], alerts: [{ finding: { subject: { user: 'ada' } } }] })
  })

  it('names the line of a leak that became known while the message waited for others', async () => {
    const world = pretendWorld({ settings: { 'alerts.group_seconds': 30 } })
    const subject = { run: 'r', rank: 0 }
    world.say('leak|run=r|rank=0', { detector: 'leak', subject, evidence: { source: 'allocator' } })
    await world.pass(10_000)
    expect(world.channel.got).toEqual([])
    world.say('leak|run=r|rank=0', { detector: 'leak', subject, evidence: { source: 'allocator', line: 'train.py:77 in remember' } })
    await world.pass(MINUTE)
    expect(world.channel.got.map(({ alerts }) => alerts.map(({ finding }) => finding.evidence.line))).toEqual([['train.py:77 in remember']])
  })

  it('is sent once more, in its thread, when the line of the leak becomes known', async () => {
    const world = pretendWorld()
    const say = (evidence: object) =>
      world.say('leak|run=r|rank=0', { detector: 'leak', subject: { run: 'r', rank: 0 }, evidence: { ...evidence } })
    say({ source: 'allocator' })
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['leak|run=r|rank=0 firing'])
    for (const line of ['train.py:77 in remember', 'train.py:78 in remember', 'train.py:77 in remember']) {
      say({ source: 'allocator', line })
      await world.pass(MINUTE)
    }
    expect(world.channel.said()).toEqual(['leak|run=r|rank=0 firing', 'leak|run=r|rank=0 repeat'])
    const [first, second] = world.channel.got
    expect(second).toMatchObject({ threadId: first?.threadId, alerts: [{ finding: { evidence: { line: 'train.py:77 in remember' } } }] })
  })

  it('is not sent once more for a cause that it named already, nor while it is acknowledged', async () => {
    const world = pretendWorld()
    const died = { detector: 'run_died', severity: 'critical', subject: { run: 'r' } } as const
    world.say('run_died|run=r', { ...died, evidence: { cause: 'a leak', place: 'train.py:77' } })
    world.say('run_died|run=s', { ...died, evidence: { cause: null, place: null, also_seen: null } })
    await world.pass(MINUTE)
    world.alerts.acknowledge('run_died|run=s', NOON + 60 * MINUTE, 'ada')
    world.say('run_died|run=r', { ...died, evidence: { cause: 'a leak', place: 'train.py:77', also_seen: 'XID 31' } })
    world.say('run_died|run=s', { ...died, evidence: { cause: null, place: null, also_seen: 'the kernel killed python' } })
    await world.pass(5 * MINUTE)
    expect(world.channel.said()).toEqual(['run_died|run=r firing, run_died|run=s firing'])
  })

  it('gives links to the web UI and to silence it', async () => {
    const world = pretendWorld({ settings: { 'alerts.dashboard_url': 'https://gpu.example.org/' } })
    world.say('thermal|gpu=GPU-0')
    await world.pass(MINUTE)
    expect(world.channel.got[0]?.links).toEqual({
      dashboard: 'https://gpu.example.org/#/alerts',
      silence: 'https://gpu.example.org/#/silence?fingerprint=thermal%7Cgpu%3DGPU-0',
    })
  })

  it('forgets the alerts of a recording that starts over, past ones too, and sends nothing about it', async () => {
    const world = pretendWorld({ provenance: 'replay' })
    world.say('a', { provenance: 'replay' })
    world.say('b', { provenance: 'replay' })
    await world.pass(MINUTE)
    world.clear('b')
    await world.pass(HOUR, MINUTE)
    expect(world.alerts.list().map(({ fingerprint }) => fingerprint)).toContain('a')
    expect(world.alerts.history().length).toBe(1)
    world.alerts.accept({ type: 'restart' })
    expect(world.alerts.list()).toEqual([])
    expect(world.alerts.history()).toEqual([])
    await world.pass(HOUR, MINUTE)
    expect(world.channel.said()).toEqual([])
    // What is found again at the same moment is an alert again.
    world.say('a', { provenance: 'replay' })
    await world.pass(MINUTE)
    expect(world.alerts.list()).toEqual([expect.objectContaining({ fingerprint: 'a', state: 'firing' })])
  })

  it('settles the alerts of a recording at its end, and those of nothing else', async () => {
    const world = pretendWorld({ settings: { 'alerts.simulated': true } })
    world.say('of the machine')
    for (const name of ['open', 'cleared']) world.say(name, { provenance: 'replay' })
    await world.pass(MINUTE)
    world.clear('cleared', { provenance: 'replay' })
    world.say('just begun', { provenance: 'replay', detector: 'throttle' })
    world.alerts.accept({ type: 'playback', playback: { state: 'ended', at: NOON + MINUTE, speed: 1, jumps: 0 } })
    const states = () => world.alerts.list().map(({ fingerprint, state }) => `${fingerprint} ${state}`)
    const settled = ['of the machine firing', 'open resolved', 'cleared resolved']
    expect(world.alerts.list().map(({ finding }) => finding.state)).toEqual(['active', 'resolved', 'resolved'])
    expect(states()).toEqual(settled)
    expect(world.alerts.list()[1]?.finding.message).toMatch(/^The recording ended while this was open: /)
    expect(world.alerts.list()[2]?.finding.message).not.toContain('recording')
    await world.pass(HOUR, MINUTE)
    expect(states()).toEqual(settled)
    expect(world.channel.said().at(-1)).toContain('open resolved')
  })

  it('fires nothing of a recording while it is paused', async () => {
    const world = pretendWorld({ provenance: 'replay' })
    const playback = { at: NOON, speed: 1, jumps: 0 }
    world.say('a', { provenance: 'replay', detector: 'throttle' })
    const state = () => world.alerts.list()[0]?.state
    expect(state()).toBe('pending')
    world.alerts.accept({ type: 'playback', playback: { ...playback, state: 'paused' } })
    await world.pass(HOUR, MINUTE)
    expect(state()).toBe('pending')
    world.alerts.accept({ type: 'playback', playback: { ...playback, state: 'playing' } })
    await world.pass(HOUR, MINUTE)
    expect(state()).toBe('firing')
  })

  it('keeps the alerts of real GPUs when a recording starts over', async () => {
    const world = pretendWorld()
    world.say('a')
    await world.pass(MINUTE)
    world.alerts.accept({ type: 'restart' })
    expect(world.alerts.list().length).toBe(1)
  })

  it('does not deliver simulated alerts unless configured to, and then marks them', async () => {
    const world = pretendWorld({ provenance: 'simulated' })
    world.say('a', { severity: 'critical', subject: { gpu: 'GPU-0' } })
    await world.pass(MINUTE)
    expect(world.channel.got).toEqual([])
    expect(world.alerts.list()).toMatchObject([{ simulated: true, mutedBy: 'simulated' }])
    const wanted = pretendWorld({ provenance: 'simulated', settings: { 'alerts.simulated': true } })
    wanted.say('a', { severity: 'critical', subject: { gpu: 'GPU-0' } })
    await wanted.pass(MINUTE)
    expect(wanted.channel.got).toMatchObject([{ simulated: true }])
    const restarted = pretendWorld()
    restarted.state.views = []
    restarted.say('a', { severity: 'critical', provenance: 'simulated', subject: { gpu: 'GPU-0' } })
    await restarted.pass(MINUTE)
    expect(restarted.channel.got).toEqual([])
  })

  it('sends a test straight to a channel and shows its answer', async () => {
    const world = pretendWorld()
    expect(await world.alerts.test('email')).toEqual({ ok: true, answer: '250 taken' })
    expect(world.channel.got).toMatchObject([{ kind: 'test', alerts: [{ status: 'firing' }] }])
    world.channel.answer = () => ({ ok: false, retry: false, reason: '535 wrong password' })
    expect(await world.alerts.test('email')).toEqual({ ok: false, retry: false, reason: '535 wrong password' })
    expect(await world.alerts.test('pager')).toMatchObject({ ok: false, reason: 'there is no channel "pager"; configured: email' })
  })
})

describe('alerts: what people ask for', () => {
  it('sends nothing while a silence covers it, and sends when the silence ends and the problem is still there', async () => {
    const world = pretendWorld()
    const silence = world.alerts.silence([parseMatcher('detector=intruder')], NOON + HOUR, 'known', 'ada')
    expect(world.alerts.silences()).toEqual([silence])
    world.say('a')
    world.say('b', { detector: 'thermal' })
    await world.pass(50 * MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['b firing'])
    expect(world.alerts.list().find((alert) => alert.fingerprint === 'a')).toMatchObject({ mutedBy: 'silence', silence: silence.id })
    expect(world.alerts.health().alerts).toMatchObject({ firing: 2, silenced: 1 })
    await world.pass(11 * MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['b firing', 'a firing'])
    expect(world.alerts.silences()).toEqual([])
  })

  it('withdraws what waits when it is silenced', async () => {
    const world = pretendWorld()
    world.say('a')
    await world.pass(10 * SECOND)
    world.alerts.silence([parseMatcher('fingerprint=a')], NOON + HOUR, '', 'ada')
    await world.pass(MINUTE)
    world.clear('a')
    await world.pass(2 * HOUR, MINUTE)
    expect(world.channel.got).toEqual([])
  })

  it('ends a silence on request', async () => {
    const world = pretendWorld()
    const { id } = world.alerts.silence([parseMatcher('host=box')], NOON + HOUR, '', 'ada')
    world.say('a')
    await world.pass(MINUTE)
    expect(world.alerts.unsilence(id)).toBe(true)
    expect(world.alerts.unsilence(id)).toBe(false)
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['a firing'])
  })

  it('sends the end of an alert that was sent even under a silence, so that an opened page is closed', async () => {
    const world = pretendWorld()
    world.say('a')
    await world.pass(MINUTE)
    world.alerts.silence([parseMatcher('host=box')], NOON + HOUR, '', 'ada')
    world.say('never told')
    await world.pass(MINUTE)
    world.clear('a')
    world.clear('never told')
    await world.pass(3 * MINUTE)
    expect(world.channel.said()).toEqual(['a firing', 'a resolved'])
  })

  it('stops repeating what is acknowledged until that ends, unless it gets worse', async () => {
    const world = pretendWorld({ settings: { 'alerts.repeat_hours': 1 } })
    world.say('a')
    world.say('b')
    await world.pass(MINUTE)
    expect(world.alerts.acknowledge('a', NOON + 6 * HOUR, 'ada')).toMatchObject({ acknowledged: { by: 'ada' } })
    expect(world.alerts.acknowledge('nothing', NOON + HOUR, 'ada')).toBe(null)
    expect(() => world.alerts.acknowledge('a', NOON - 1, 'ada')).toThrow('in the future')
    await world.pass(65 * MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['a firing, b firing', 'b repeat'])
    world.say('a', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.channel.said().at(-1)).toBe('a firing')
    await world.pass(6 * HOUR, MINUTE)
    expect(world.channel.said().filter((said) => said.includes('a repeat')).length).toBeGreaterThan(0)
  })

  it('holds back all but critical in quiet hours, and sends the rest after, as one message', async () => {
    const night = new Date(2025, 6, 30, 21, 59, 0).getTime()
    const world = pretendWorld({ at: night, settings: { 'alerts.quiet_hours': [{ from: '22:00', to: '07:00' }] } })
    world.say('before')
    await world.pass(50 * SECOND)
    expect(world.channel.said()).toEqual(['before firing'])
    await world.pass(2 * MINUTE)
    world.say('a')
    world.say('urgent', { severity: 'critical' })
    await world.pass(HOUR, MINUTE)
    expect(world.channel.said()).toEqual(['before firing', 'urgent firing'])
    world.clear('a')
    world.say('b')
    world.clear('before')
    await world.pass(7 * HOUR, MINUTE)
    expect(
      world.channel
        .said()
        .slice(2)
        .filter((said) => !said.includes('urgent')),
    ).toEqual([])
    await world.pass(HOUR + MINUTE, MINUTE)
    expect(world.channel.said().at(-1)).toBe('a late, b firing, before resolved')
  })

  it('says nothing of problem in a maintenance window, only for the GPUs it is for', async () => {
    const window = { from: '11:00', to: '13:00', gpu: ['1'] }
    const world = pretendWorld({ settings: { 'alerts.maintenance': [window] } })
    world.say('a', { subject: { gpu: 'GPU-0', gpuIndex: 0 } })
    world.say('b', { severity: 'critical', subject: { gpu: 'GPU-1', gpuIndex: 1 } })
    world.say('c', { severity: 'critical', subject: { gpu: 'GPU-1', gpuIndex: 1 } })
    await world.pass(30 * MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['a firing'])
    world.clear('c')
    await world.pass(31 * MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['a firing', 'b firing'])
  })
})
