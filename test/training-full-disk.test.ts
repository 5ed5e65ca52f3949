/** A disk that is really full: steps are refused, and once there is room again none is missing and none is there twice. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { parseStepLine } from '../src/core/recording/line.ts'
import { RunningAgent } from './program.ts'
import { fillDisk, mountSmallDisk, unmountSmallDisk } from './small-disk.ts'
import { closeAll, lines, logged, post, postLines, start } from './training-world.ts'

const mounts: string[] = []

function smallDisk(megabytes: number): string | null {
  const path = mountSmallDisk(megabytes)
  if (path !== null) mounts.push(path)
  return path
}

function unmountAll(): void {
  for (const path of mounts.splice(0)) unmountSmallDisk(path)
}

const probe = smallDisk(1)
unmountAll()
const agents: RunningAgent[] = []

afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.stop('SIGKILL')
  await closeAll()
})
afterAll(unmountAll)

const all = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe.skipIf(probe === null)('a full disk (needs root and mount)', () => {
  it('is said, and no step is lost or doubled over it', async () => {
    const disk = smallDisk(8) ?? ''
    const { url, dir, steps, store, training } = await start(join(disk, 'logs'))
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    expect((await postLines(to, lines(1, 100))).status).toBe(200)
    await store.flush()
    const filler = fillDisk(disk)
    // What does not fit is refused, as often as it is tried.
    for (const _ of [1, 2, 3]) {
      const refused = await postLines(to, lines(101, 3000))
      const { code, message } = refused.body.error as { code: string; message: string }
      expect([refused.status, code]).toEqual([503, 'unavailable'])
      expect(message).toMatch(/ENOSPC|no space/i)
    }
    expect((await post(`${url}/api/v1/runs`, { id: 'r2', name: 'another' })).status).toBe(503)
    expect(training.health().reason).toMatch(/ENOSPC/)
    // A checkpoint in this state must not discard anything.
    await training.checkpoint()
    expect(steps.length).toBe(100)
    rmSync(filler)
    expect((await postLines(to, lines(101, 3000))).body).toMatchObject({ accepted: 2900, duplicates: 0 })
    expect(training.health().reason).toBe(null)
    await training.checkpoint()
    await store.flush()
    const found = logged(dir).map(({ step }) => Number(step))
    expect(found.sort((a, b) => a - b)).toEqual(all(3000))
    expect(readdirSync(join(dir, 'runs')).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  it('does not keep NaN from being found: what cannot be stored is judged from memory, once', async () => {
    const disk = smallDisk(6) ?? ''
    const logDir = join(disk, 'logs')
    mkdirSync(logDir)
    const agent = await RunningAgent.start(['--source', 'demo', '--interval', '0.5'], { GPUWARDEN_LOG_COMPRESS: 'false' }, logDir)
    agents.push(agent)
    const run = { id: 'r1', name: 'mine', pid: 4242 }
    await post(`${agent.url}/api/v1/runs`, run)
    const to = `${agent.url}/api/v1/runs/r1/steps`
    // Known steps go with it: a line alone may fit where a batch does not.
    const nan = `${JSON.stringify({ seq: 101, step: 101, t: Date.now(), loss: 'NaN' })}\n${lines(1, 100)}`
    const finite = `${lines(102, 130)}\n${lines(1, 100)}`
    expect((await postLines(to, lines(1, 100))).status).toBe(200)
    const filler = fillDisk(disk)
    // A sender that was refused announces its run again before it sends: nothing in it is new, so nothing has to be stored.
    await expect.poll(async () => (await postLines(to, lines(1, 100))).status).toBe(503)
    expect((await postLines(to, nan)).status).toBe(503)
    expect((await post(`${agent.url}/api/v1/runs`, run)).status).toBe(200)
    const findings = async () => {
      const { findings: all } = (await (await fetch(`${agent.url}/api/v1/findings`)).json()) as { findings: Record<string, unknown>[] }
      return all.filter(({ detector, subject }) => detector === 'loss_nan' && (subject as { run: string }).run === 'r1')
    }
    await expect.poll(findings).toHaveLength(1)
    const [first] = await findings()
    for (const _ of [1, 2]) expect((await postLines(to, nan)).status).toBe(503)
    expect(await findings()).toEqual([first])
    expect((await postLines(to, finite)).status).toBe(503)
    await expect.poll(findings).toEqual([])
    rmSync(filler)
    // Each is stored once, and was judged already: the NaN is not found a second time.
    expect((await postLines(to, nan)).body).toMatchObject({ accepted: 1, duplicates: 100 })
    expect(await findings()).toEqual([])
    expect((await postLines(to, finite)).body).toMatchObject({ accepted: 29, duplicates: 100 })
  })

  it('fills while steps come in, the agent is killed, and the next one has every step that was acknowledged, once', async () => {
    const disk = smallDisk(6) ?? ''
    const logDir = join(disk, 'logs')
    mkdirSync(logDir)
    const begin = async () => {
      const agent = await RunningAgent.start(['--source', 'demo', '--interval', '10'], { GPUWARDEN_LOG_COMPRESS: 'false' }, logDir)
      agents.push(agent)
      return agent
    }
    const filler = join(disk, 'filler')
    const first = await begin()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    writeFileSync(filler, Buffer.alloc(3 * 1024 * 1024))
    let acknowledged = 0
    let status = 200
    for (let from = 1; status === 200 && from < 60_000; from += 500) {
      status = (await postLines(`${first.url}/api/v1/runs/r1/steps`, lines(from, from + 499))).status
      if (status === 200) acknowledged = from + 499
    }
    expect(status).toBe(503)
    await first.stop('SIGKILL')
    rmSync(filler)
    const second = await begin()
    const answer = await postLines(`${second.url}/api/v1/runs/r1/steps`, lines(1, acknowledged + 500))
    expect(answer.body).toMatchObject({ accepted: 500, duplicates: acknowledged })
    await second.stop()
    // The line at which the disk was full may be torn; every reader of recordings passes over it.
    const found = readdirSync(logDir)
      .filter((name) => name.startsWith('training_metrics_'))
      .flatMap((name) => readFileSync(join(logDir, name), 'utf8').split('\n'))
      .map((text) => parseStepLine(text))
      .flatMap((step) => (typeof step !== 'string' && step.run === 'r1' ? step.step : []))
    expect(found.sort((a, b) => a - b)).toEqual(all(acknowledged + 500))
  })
})
