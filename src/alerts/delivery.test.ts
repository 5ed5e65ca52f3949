import { execFileSync } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AlertMessage } from '../core/alert-contract.ts'
import { untoldBy } from '../core/known/alerts.ts'
import { NO_FIGURES } from '../core/record.ts'
import { ENGINE_LIMITS } from './engine.ts'
import {
  gpuSample,
  HOUR,
  MINUTE,
  NOON,
  PretendChannel,
  pretendWorld,
  SECOND,
  temporaryDir,
  tickOf,
  type World,
} from './pretend-world.contract.ts'

describe('delivery that fails', () => {
  it('delivers everything after an hour without a mail server: in order, and joined where it fired and cleared', async () => {
    const world = pretendWorld()
    world.say('told')
    await world.pass(MINUTE)
    world.channel.goDown()
    world.say('first')
    await world.pass(5 * MINUTE)
    world.say('second')
    world.clear('first')
    world.clear('told')
    world.say('third')
    await world.pass(10 * MINUTE)
    world.clear('third')
    world.say('last', { severity: 'critical' })
    await world.pass(45 * MINUTE)
    expect(world.channel.said()).toEqual(['told firing'])
    const health = world.alerts.health()
    expect(health.spoolDepth).toBeGreaterThan(0)
    expect(health.spoolOldestAgeMs).toBeGreaterThan(50 * MINUTE)
    expect(health.channels).toMatchObject([{ channel: 'email', lastFault: 'connection refused' }])
    world.channel.goUp()
    await world.pass(15 * MINUTE)
    expect(world.channel.said()).toEqual(['told firing', 'first late', 'last firing, second firing, third late', 'told resolved'])
    const late = world.channel.got[1]
    expect(late?.alerts[0]).toMatchObject({ firedAt: NOON + MINUTE, resolvedAt: NOON + 6 * MINUTE, finding: { message: 'first is wrong' } })
    expect(late?.delayedMs).toBeGreaterThan(50 * MINUTE)
    expect(world.alerts.health()).toMatchObject({
      spoolDepth: 0,
      spoolOldestAgeMs: null,
      channels: [{ results: { delivered: 4 }, lastFault: null }],
    })
  })

  it('waits longer after each failure, up to ten minutes, and keeps the id over all tries', async () => {
    const world = pretendWorld()
    const ids = new Set<string>()
    const triedAt: number[] = []
    world.channel.answer = (message) => {
      ids.add(message.id)
      triedAt.push(world.at)
      return { ok: false, retry: true, reason: '421 later' }
    }
    world.say('a', { severity: 'critical' })
    await world.alerts.sweep()
    await world.pass(2 * HOUR, SECOND)
    expect(ids.size).toBe(1)
    const pauses = triedAt.slice(1).map((at, index) => Math.round((at - (triedAt[index] ?? 0)) / SECOND))
    expect(pauses.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 320, 600])
    expect(Math.max(...pauses)).toBe(600)
    expect(world.log.lines.filter((line) => line.level === 'warn').length).toBe(1)
  })

  it('gives up at once on what can never arrive, says so, and does not tell of its end', async () => {
    const world = pretendWorld()
    world.channel.answer = () => ({ ok: false, retry: false, hopeless: true, reason: 'there is no recipient' })
    world.say('a')
    await world.pass(MINUTE)
    expect(world.channel.tries).toBe(1)
    world.channel.goUp()
    world.clear('a')
    await world.pass(5 * MINUTE)
    expect(world.channel.got).toEqual([])
    expect(world.alerts.health().channels).toMatchObject([{ results: { refused: 1, delivered: 0 } }])
    expect(world.log.lines.find((line) => line.level === 'error')?.message).toContain('there is no recipient')
  })

  it('gives a message up when it is too old, and announces again what is still there', async () => {
    const world = pretendWorld({ settings: { 'alerts.max_age_hours': 2, 'alerts.repeat_hours': 1 } })
    world.channel.goDown()
    world.say('a')
    world.say('gone')
    await world.pass(MINUTE)
    world.clear('gone')
    await world.pass(2 * HOUR + 11 * MINUTE, MINUTE)
    expect(world.alerts.health().channels).toMatchObject([{ results: { expired: 1 } }])
    world.channel.goUp()
    await world.pass(HOUR + MINUTE, MINUTE)
    expect(world.channel.said()).toEqual(['a firing'])
  })

  it('goes on when a channel throws, or never answers', async () => {
    const world = pretendWorld({ more: { deliveryTimeoutMs: 30 } })
    world.channel.answer = () => {
      throw new Error('a bug of the channel')
    }
    world.say('a', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.alerts.health().channels[0]?.lastFault).toBe('a bug of the channel')
    world.channel.answer = (_message, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await world.pass(10 * SECOND)
    expect(world.alerts.health().channels[0]?.lastFault).toContain('did not answer')
    world.channel.goUp()
    await world.pass(30 * SECOND)
    expect(world.channel.said()).toEqual(['a firing'])
  })

  it('does not change a message that is on its way: what clears meanwhile follows', async () => {
    const world = pretendWorld({ settings: { 'alerts.keep_firing_seconds': 0 } })
    let arrive: () => void = () => undefined
    world.channel.answer = () =>
      new Promise((resolve) => {
        arrive = () => resolve({ ok: true, answer: 'ok' })
      })
    world.say('a', { severity: 'critical' })
    const sweep = world.alerts.sweep()
    while (world.channel.tries === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    world.clear('a')
    world.channel.goUp()
    arrive()
    await sweep
    await world.pass(MINUTE)
    expect(world.channel.said()).toEqual(['a firing', 'a resolved'])
  })

  it('survives a clock that jumps a year ahead and back: nothing expires, nothing is sent early or twice', async () => {
    const world = pretendWorld({ settings: { 'alerts.rules.throttle': { for_seconds: 300 } } })
    world.channel.goDown()
    world.say('a')
    await world.pass(5 * MINUTE)
    world.at += 365 * 24 * HOUR
    await world.pass(MINUTE)
    world.say('patient', { detector: 'throttle' })
    world.at += 24 * HOUR
    await world.pass(MINUTE)
    expect(world.alerts.list().find((alert) => alert.fingerprint === 'patient')?.state).toBe('pending')
    world.at = NOON - HOUR
    await world.pass(MINUTE)
    world.channel.goUp()
    await world.pass(12 * MINUTE)
    expect(world.channel.said()).toEqual(['a firing', 'patient firing'])
    expect(world.alerts.health().channels).toMatchObject([{ results: { expired: 0 } }])
  })
})

describe('delivery of too much', () => {
  it('stays bounded and sends a digest when 10,000 problems come in a minute', async () => {
    const dir = await temporaryDir()
    const world = pretendWorld({ dir })
    for (let minute = 0; minute < 3; minute++)
      for (let second = 0; second < 60; second++) {
        for (let i = 0; i < 167; i++) {
          const number = (minute * 60 + second) * 167 + i
          world.say(`flood-${number}`, { severity: number % 1000 === 0 ? 'critical' : 'warning' })
        }
        await world.pass(SECOND, SECOND)
      }
    expect(world.alerts.list().length).toBe(ENGINE_LIMITS.records)
    expect(world.alerts.dropped().count).toBeGreaterThan(20_000)
    expect(world.alerts.health().channels[0]?.depth).toBeLessThanOrEqual(201)
    expect(world.channel.got.length).toBeLessThanOrEqual(14)
    const sizes = world.channel.got.map((message) => message.alerts.length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(50)
    expect(world.channel.got.some((message) => message.suppressed > 100)).toBe(true)
    await world.alerts.flush()
    const files = await readdir(dir)
    const bytes = (await Promise.all(files.map((file) => readFile(join(dir, file))))).reduce((sum, file) => sum + file.length, 0)
    expect(bytes).toBeLessThan(16 * 1024 * 1024)
    // Everything that came is in a message by name, or one of its "N more".
    await world.pass(HOUR, MINUTE)
    const named = new Set(world.channel.got.flatMap((message) => message.alerts.map((alert) => alert.fingerprint)))
    const more = world.channel.got.reduce((sum, message) => sum + message.suppressed, 0)
    expect(named.size + more).toBe(3 * 60 * 167)
  })

  it('links to exactly those that a message does not name', async () => {
    const world = pretendWorld({ settings: { 'alerts.dashboard_url': 'http://box:4780' } })
    for (let number = 0; number < 70; number++) world.say(`n${number}`)
    await world.pass(MINUTE)
    const [message] = world.channel.got
    expect([message?.alerts.length, message?.suppressed]).toEqual([50, 20])
    expect(message?.links.dashboard).toBe('http://box:4780/#/alerts?untold=email')
    const named = new Set(message?.alerts.map(({ fingerprint }) => fingerprint))
    const shown = untoldBy('email', world.alerts.list()).map(({ fingerprint }) => fingerprint)
    expect(shown.length).toBe(20)
    expect(shown.filter((fingerprint) => named.has(fingerprint))).toEqual([])
  })

  it('keeps room in the limit for what is critical', async () => {
    const world = pretendWorld({ settings: { 'alerts.burst': 4, 'alerts.messages_per_hour': 1, 'alerts.group_seconds': 0 } })
    for (let i = 0; i < 6; i++) {
      world.say(`w${i}`)
      await world.pass(SECOND)
    }
    expect(world.channel.said()).toEqual(['w0 firing', 'w1 firing', 'w2 firing'])
    world.say('c', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.channel.said().at(-1)).toBe('c firing, w3 firing, w4 firing, w5 firing')
  })
})

/** Samples of GPU 0 and steps of run r, ten seconds apart. */
async function watch(world: World, ms: number, loss: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10 * SECOND) {
    world.alerts.accept({ type: 'tick', tick: tickOf(world.at, [gpuSample('GPU-0', world.at, {})]) })
    world.alerts.accept({
      type: 'steps',
      provenance: 'live',
      steps: [{ kind: 'step', run: 'r', rank: 0, step: 1, at: world.at, ...NO_FIGURES, loss, phaseSeconds: null, custom: null }],
    })
    await world.pass(10 * SECOND)
  }
}

describe('delivery over a restart', () => {
  it('sends what was waiting, once, and knows what was sent before', async () => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel })
    before.say('told')
    await before.pass(MINUTE)
    channel.goDown()
    before.say('waits')
    before.alerts.silence([{ name: 'gpu', operator: '=', value: '3' }], NOON + HOUR, 'why', 'ada')
    await before.pass(MINUTE)
    before.alerts.acknowledge('told', NOON + HOUR, 'ada')
    await before.alerts.close()
    channel.goUp()

    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    expect(after.alerts.list()).toMatchObject([
      { fingerprint: 'told', state: 'firing', told: ['email'], acknowledged: { by: 'ada' } },
      { fingerprint: 'waits', state: 'firing', told: [] },
    ])
    expect(after.alerts.silences()).toMatchObject([{ comment: 'why' }])
    after.say('told')
    after.say('waits')
    await after.pass(10 * MINUTE)
    expect(channel.said()).toEqual(['told firing', 'waits firing'])
    expect(channel.got[1]?.delayedMs).toBeGreaterThan(0)
    after.clear('told')
    await after.pass(3 * MINUTE)
    expect(channel.said().at(-1)).toBe('told resolved')
    expect(channel.got[2]?.threadId).toBe(channel.got[0]?.threadId)
  })

  it('does not resend an alert that was over when its detector is restored from an older state', async () => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel, settings: { 'alerts.keep_firing_seconds': 0 } })
    before.say('a')
    await before.pass(MINUTE)
    before.clear('a')
    await before.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'a resolved'])
    await before.alerts.close()

    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    after.say('a', { at: NOON + 30 * SECOND, since: NOON })
    await after.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'a resolved'])
    after.alerts.accept({ type: 'tick', tick: tickOf(after.at, []) })
    after.say('a')
    await after.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'a resolved', 'a firing'])
  })

  it('does not announce a NaN again that is found anew in the steps which a killed agent left', async () => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const subject = { run: 'r' }
    const before = pretendWorld({ dir, channel, settings: { 'alerts.keep_firing_seconds': 0 } })
    before.say('a', { subject })
    await before.pass(MINUTE)
    before.clear('a', { subject })
    await before.pass(MINUTE)
    await before.alerts.close()

    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    after.alerts.accept({ type: 'tick', tick: tickOf(after.at, []) })
    after.say('a', { subject, at: NOON, since: NOON })
    await after.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'a resolved'])
    after.say('a', { subject })
    await after.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'a resolved', 'a firing'])
  })

  it('knows what was sent before when it starts on a full disk', async (context) => {
    const dir = await temporaryDir()
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'ignore' })
    } catch {
      context.skip('mounting a tmpfs is not permitted here')
    }
    onTestFinished(() => void execFileSync('umount', ['-l', dir]))
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel })
    before.say('a')
    await before.pass(MINUTE)
    await before.alerts.close()
    const ballast = join(dir, 'ballast')
    await writeFile(ballast, Buffer.alloc(2 * 1024 * 1024)).catch(() => undefined)
    const after = pretendWorld({ dir, channel, at: NOON + 2 * MINUTE, more: { diskRetryMs: 0 } })
    expect(after.alerts.health().fault).toContain('ENOSPC')
    for (const name of ['a', 'b']) after.say(name)
    await after.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'b firing'])
    await rm(ballast)
    expect(await after.alerts.flush()).toBe(true)
    await after.alerts.close()
    const last = pretendWorld({ dir, channel, at: NOON + 5 * MINUTE })
    for (const name of ['a', 'b']) last.say(name)
    await last.pass(MINUTE)
    expect(channel.said()).toEqual(['a firing', 'b firing'])
  })

  it('tries what is there before it closes, without waiting for company', async () => {
    const world = pretendWorld({ dir: await temporaryDir() })
    world.say('a')
    await world.alerts.close()
    expect(world.channel.said()).toEqual(['a firing'])
  })

  it('resolves what no detector reports anymore after a restart', async () => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel })
    before.say('a')
    before.say('b')
    await before.pass(MINUTE)
    await before.alerts.close()
    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    await after.pass(30 * MINUTE, MINUTE)
    after.say('b')
    expect(channel.said()).toEqual(['a firing, b firing'])
    await after.pass(20 * MINUTE, MINUTE)
    expect(channel.said()).toEqual(['a firing, b firing', 'a resolved'])
    expect(channel.got[1]?.alerts[0]?.finding.message).toMatch(/^Not reported again/)
  })

  it.each([
    { what: 'a GPU that was cool', parts: { detector: 'thermal', subject: { gpu: 'GPU-0' } } },
    { what: 'a run whose loss was finite', parts: { detector: 'loss_nan', subject: { run: 'r' } } },
    { what: 'a driver that answered', parts: { detector: 'driver_stuck', evidence: { source: 'nvidia' } } },
  ])('announces again what came back after a restart that nobody confirmed it over: $what', async ({ parts }) => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel })
    before.say('a', parts)
    await before.pass(MINUTE)
    await before.alerts.close()
    const after = pretendWorld({ dir, channel, at: NOON + 2 * MINUTE })
    await watch(after, 4 * MINUTE, 2)
    expect(channel.said()).toEqual(['a firing'])
    after.say('a', parts)
    await watch(after, 10 * MINUTE, Number.NaN)
    after.say('a', parts)
    await watch(after, MINUTE, Number.NaN)
    expect(channel.said()).toEqual(['a firing', 'a resolved', 'a firing'])
    expect(channel.got[1]?.alerts[0]?.finding.message).toMatch(/^Gone after gpuwarden was restarted/)
    expect(channel.got[2]?.alerts[0]?.firedAt).toBe(NOON + 6 * MINUTE)
    expect(after.alerts.history()).toHaveLength(1)
  })

  it.each([
    {
      what: 'a GPU that is found hot again at once',
      parts: { detector: 'thermal', subject: { gpu: 'GPU-0' } },
      loss: 2,
      afterMs: 40 * SECOND,
    },
    { what: 'one that was not read in between', parts: { detector: 'thermal', subject: { gpu: 'GPU-9' } }, loss: 2, afterMs: 4 * MINUTE },
    {
      what: 'a run that logs its loss rarely',
      parts: { detector: 'loss_nan', subject: { run: 'r' } },
      loss: Number.NaN,
      afterMs: 4 * MINUTE,
    },
    { what: 'what takes long to find', parts: { detector: 'leak', subject: { gpu: 'GPU-0' } }, loss: 2, afterMs: 20 * MINUTE },
    { what: 'what began before', parts: { detector: 'thermal', subject: { gpu: 'GPU-0' }, since: NOON }, loss: 2, afterMs: 4 * MINUTE },
  ])('does not announce again what may have lasted over a restart: $what', async ({ parts, loss, afterMs }) => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    const before = pretendWorld({ dir, channel })
    before.say('a', parts)
    await before.pass(MINUTE)
    await before.alerts.close()
    const after = pretendWorld({ dir, channel, at: NOON + 2 * MINUTE })
    await watch(after, afterMs, loss)
    after.say('a', parts)
    await watch(after, 10 * MINUTE, loss)
    expect(channel.said()).toEqual(['a firing'])
  })

  it('drops what waits for a channel that is no longer configured, and says so', async () => {
    const dir = await temporaryDir()
    const old = new PretendChannel('pager/old')
    old.goDown()
    const before = pretendWorld({ dir, channel: old })
    before.say('a')
    await before.pass(MINUTE)
    await before.alerts.close()
    const after = pretendWorld({ dir, at: NOON + 10 * MINUTE })
    expect(after.log.lines.map((line) => line.message).join()).toContain('no longer configured (pager/old)')
    await after.pass(MINUTE)
    expect(after.channel.got).toEqual([])
    after.say('a')
    await after.pass(MINUTE)
    expect(after.channel.said()).toEqual(['a firing'])
  })

  it('delivers from memory when the disk does not take it, says so, and keeps it again when it does', async () => {
    const parent = await temporaryDir()
    const dir = join(parent, 'alerts')
    await writeFile(dir, 'in the way')
    const world = pretendWorld({ dir, more: { diskRetryMs: 0 } })
    expect(await world.alerts.flush()).toBe(false)
    expect(world.alerts.health()).toMatchObject({ state: 'degraded', fault: expect.stringContaining('EEXIST') as string })
    world.say('a', { severity: 'critical' })
    await world.alerts.sweep()
    expect(world.channel.said()).toEqual(['a firing'])
    expect(world.log.lines.filter((line) => line.level === 'error').length).toBe(1)
    await rm(dir)
    expect(await world.alerts.flush()).toBe(true)
    expect(world.alerts.health()).toMatchObject({ state: 'ok', fault: null })
    await world.alerts.close()
    expect(pretendWorld({ dir }).alerts.list()).toMatchObject([{ fingerprint: 'a', told: ['email'] }])
  })

  it('delivers while the disk is full, and keeps everything once there is room', async (context) => {
    const dir = await temporaryDir()
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'ignore' })
    } catch {
      context.skip('mounting a tmpfs is not permitted here')
    }
    onTestFinished(() => void execFileSync('umount', ['-l', dir]))
    const channel = new PretendChannel()
    const world = pretendWorld({ dir, channel, more: { diskRetryMs: 0 } })
    world.say('before')
    expect(await world.alerts.flush()).toBe(true)
    const ballast = join(dir, 'ballast')
    await writeFile(ballast, Buffer.alloc(2 * 1024 * 1024)).catch(() => undefined)
    for (let i = 0; i < 40; i++) world.say(`a${i}`, { message: 'x'.repeat(500) })
    await world.pass(MINUTE)
    expect(world.alerts.health().fault).toContain('ENOSPC')
    expect(channel.got[0]?.alerts.length).toBe(41)
    await rm(ballast)
    expect(await world.alerts.flush()).toBe(true)
    await world.alerts.close()
    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    expect(after.alerts.list().length).toBe(41)
    await after.pass(MINUTE)
    expect(channel.got.length).toBe(1)
  })

  it('goes on with the rest when the journal is damaged, and shows it', async () => {
    const dir = await temporaryDir()
    const channel = new PretendChannel()
    channel.goDown()
    const before = pretendWorld({ dir, channel })
    for (const name of ['one', 'two', 'three']) before.say(name)
    await before.alerts.close()
    await rewriteJournal(dir)
    const file = join(dir, 'alerts.journal')
    const lines = (await readFile(file, 'utf8')).split('\n')
    const index = lines.findIndex((line) => line.includes('alert/two'))
    lines[index] = lines[index]?.slice(0, 40) ?? ''
    await writeFile(file, lines.join('\n'))
    channel.goUp()
    const after = pretendWorld({ dir, channel, at: NOON + 10 * MINUTE })
    expect(after.alerts.list().map((alert) => alert.fingerprint)).toEqual(['one', 'three'])
    await after.alerts.flush()
    expect(after.alerts.health().corruptFiles.length).toBe(1)
    await after.pass(20 * MINUTE)
    expect(channel.said()).toEqual(['one firing, two firing, three firing'])
  })
})

/** A start writes the journal anew, an entry a line. */
async function rewriteJournal(dir: string): Promise<void> {
  const channel = new PretendChannel()
  channel.goDown()
  const world = pretendWorld({ dir, channel })
  await world.alerts.flush()
  await world.alerts.close()
}

describe('what a message is made of', () => {
  it('is plain data that survives JSON', async () => {
    const world = pretendWorld()
    world.say('a', { evidence: { slope: Number.POSITIVE_INFINITY, loss: Number.NaN, used: 3 } })
    await world.pass(MINUTE)
    const message = world.channel.got[0] as AlertMessage
    expect(JSON.parse(JSON.stringify(message))).toEqual(message)
    expect(message.alerts[0]?.finding.evidence).toEqual({ slope: 'Infinity', loss: 'NaN', used: 3 })
  })
})
