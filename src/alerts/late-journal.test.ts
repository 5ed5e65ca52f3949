/** An agent that cannot use its folder at the start, such as in a new container right after the old one was killed. */
import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ownIdentity } from '../core/process-identity.ts'
import { HOUR, MINUTE, NOON, PretendChannel, pretendWorld, SECOND, temporaryDir, type World } from './pretend-world.contract.ts'

/** As an agent that was killed a moment ago in another PID namespace left it. */
function leaveLock(dir: string, text = `${JSON.stringify({ ...ownIdentity(), pidNamespace: 'pid:[1]' })}\n`): string {
  const lock = join(dir, 'alerts.lock')
  writeFileSync(lock, text)
  return lock
}

const silent = (lock: string) => utimesSync(lock, Date.now() / 1000 - 300, Date.now() / 1000 - 300)

interface Killed {
  readonly dir: string
  readonly channel: PretendChannel
}

/** `told` was sent an hour ago, `waits` was not, `over` is history; there is a silence. */
async function killedAgent(): Promise<Killed> {
  const dir = await temporaryDir()
  const channel = new PretendChannel()
  const world = pretendWorld({ dir, channel, settings: { 'alerts.keep_firing_seconds': 0 } })
  world.say('told')
  world.say('over')
  await world.pass(MINUTE)
  world.clear('over')
  await world.pass(HOUR, MINUTE)
  channel.goDown()
  world.say('waits')
  world.alerts.silence([{ name: 'gpu', operator: '=', value: '3' }], NOON + 10 * HOUR, 'why', 'ada')
  await world.pass(MINUTE)
  await world.alerts.close()
  channel.goUp()
  return { dir, channel }
}

const lateWorld = ({ dir, channel }: Killed): World =>
  pretendWorld({ dir, channel, at: NOON + 2 * HOUR, more: { diskRetryMs: 0 }, settings: { 'alerts.keep_firing_seconds': 0 } })

describe('a folder that is locked at the start', () => {
  it('is tried again; what is in it and what happened meanwhile are both kept', async () => {
    const killed = await killedAgent()
    const lock = leaveLock(killed.dir)
    const world = lateWorld(killed)
    expect(world.alerts.health()).toMatchObject({ state: 'degraded', fault: expect.stringContaining('already keeps its alerts') as string })
    world.say('new')
    world.alerts.silence([{ name: 'gpu', operator: '=', value: '4' }], NOON + 10 * HOUR, 'meanwhile', 'bob')
    await world.pass(MINUTE)
    const said = killed.channel.said().length
    silent(lock)
    await world.pass(10 * SECOND)
    await world.alerts.flush()
    expect(world.alerts.health()).toMatchObject({ state: 'ok', fault: null, corruptFiles: [] })
    expect(world.alerts.silences().map(({ comment }) => comment)).toEqual(['meanwhile', 'why'])
    expect(world.alerts.list().map(({ fingerprint, state }) => `${fingerprint} ${state}`)).toEqual([
      'new firing',
      'told firing',
      'waits firing',
    ])
    expect(world.alerts.history().map(({ fingerprint }) => fingerprint)).toEqual(['over'])
    for (const name of ['told', 'waits', 'new']) world.say(name)
    await world.pass(MINUTE)
    expect(killed.channel.said().slice(said)).toEqual(['waits firing'])
    // It was told an hour before the kill, and the repeat is due three hours of running later.
    await world.pass(2 * HOUR + 50 * MINUTE, MINUTE)
    expect(killed.channel.said().slice(said)).toEqual(['waits firing'])
    await world.pass(10 * MINUTE, MINUTE)
    expect(killed.channel.said().slice(said)).toEqual(['waits firing', 'told repeat'])
    await world.alerts.close()
    const again = pretendWorld({ dir: killed.dir, at: NOON + 3 * HOUR })
    expect(again.alerts.list().length).toBe(3)
    expect(again.alerts.silences().length).toBe(2)
  })

  it('goes on with an alert that fired meanwhile as the one it knows, and tells of its end', async () => {
    const killed = await killedAgent()
    const lock = leaveLock(killed.dir, 'not a lock\n')
    const world = lateWorld(killed)
    expect(world.alerts.health().state).toBe('degraded')
    world.say('told')
    await world.pass(MINUTE)
    silent(lock)
    await world.pass(10 * SECOND)
    await world.alerts.flush()
    await world.pass(MINUTE)
    expect(world.alerts.list().find(({ fingerprint }) => fingerprint === 'told')).toMatchObject({
      state: 'firing',
      unconfirmed: false,
      firedAt: NOON,
    })
    world.clear('told')
    await world.pass(MINUTE)
    expect(killed.channel.said().filter((said) => said.includes('told resolved')).length).toBe(1)
  })

  it('keeps what can be read of a damaged journal, and sets it aside', async () => {
    const killed = await killedAgent()
    const file = join(killed.dir, 'alerts.journal')
    writeFileSync(file, 'damaged\n', { flag: 'a' })
    const lock = leaveLock(killed.dir)
    const world = lateWorld(killed)
    silent(lock)
    await world.pass(10 * SECOND)
    await world.alerts.flush()
    await world.pass(MINUTE)
    expect(world.alerts.silences().length).toBe(1)
    expect(world.alerts.health().corruptFiles.length).toBe(1)
    expect(readdirSync(killed.dir).some((name) => name.endsWith('.corrupt'))).toBe(true)
  })
})
