/** The log folder on a disk that stops answering: what does not need it goes on, what does is refused, and nothing is lost when it is back. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from '../fake-nvml/index.ts'
import { RunningAgent, until } from '../program.ts'
import { buildHungDisk, HungDisk } from './hung-disk/index.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))
const built = buildHungDisk()
const why = 'reason' in built ? ` (left out: ${built.reason})` : ''
const library = 'library' in built ? built.library : ''

interface Health {
  readonly status: string
  readonly rooms: {
    readonly store: { readonly state: string; readonly reason: string | null; readonly since: number; readonly dropped: number }
    readonly alerts: { readonly fault: string | null }
    readonly training: { readonly reason: string | null }
  }
}
interface Gpus {
  readonly at: number
  readonly gpus: { readonly sample: { readonly at: number } | null }[]
}
interface AlertList {
  readonly alerts: { readonly fingerprint: string; readonly state: string; readonly told: readonly string[] }[]
}

const running: { agent: RunningAgent; disk: HungDisk }[] = []
afterEach(async () => {
  for (const { agent, disk } of running.splice(0)) {
    disk.answer()
    await agent.stop('SIGKILL')
  }
})

/** A server that counts what it is told; by name, so that it has to be looked up. */
async function webhook(): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      bodies.push(body)
      response.end('ok')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, () => resolve()))
  onTestFinished(() => void server.close())
  return { url: `http://localhost:${(server.address() as AddressInfo).port}/hook`, bodies }
}

async function begin(disk: HungDisk, hook: string | null = null) {
  const script = fakeNvmlScript({ gpus: 2 })
  const env = {
    ...disk.env,
    ...script.env,
    GPUWARDEN_NVML: buildFakeNvml(),
    GPUWARDEN_ALERTS_GROUP_SECONDS: '0',
    GPUWARDEN_LOG_BATCH_SECONDS: '0.2',
    ...(hook === null ? {} : { GPUWARDEN_CHANNELS: JSON.stringify({ hook: { type: 'webhook', url: hook } }) }),
  }
  const agent = await RunningAgent.start(['--source', 'nvidia', '--interval', '0.2'], env, disk.root)
  running.push({ agent, disk })
  return { agent, script }
}

const healthOf = (agent: RunningAgent) => agent.get<Health>('/api/v1/health')

/** How old the newest sample is, in ms. */
async function ageOf(agent: RunningAgent): Promise<number> {
  const { at, gpus } = await agent.get<Gpus>('/api/v1/gpus')
  return at - Math.max(...gpus.map(({ sample }) => sample?.at ?? 0))
}

const step = (number: number) => JSON.stringify({ step: number, rank: 0, loss: 1, seq: number })

async function postSteps(agent: RunningAgent, ...numbers: number[]) {
  const body = `${numbers.map(step).join('\n')}\n`
  const answer = await fetch(`${agent.url}/api/v1/runs/r1/steps`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  })
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body: (await answer.json()) as Record<string, unknown> }
}

async function post(agent: RunningAgent, path: string, body: object) {
  const answer = await fetch(agent.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

describe.skipIf('reason' in built)(`a log folder that does not answer${why}`, { timeout: 120_000 }, () => {
  it('stops neither samples, nor /metrics, the stream and alerts; it is said, steps are refused, and all is kept when it is back', async () => {
    const disk = new HungDisk(library)
    const hook = await webhook()
    const { agent, script } = await begin(disk, hook.url)
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    await post(agent, '/api/v1/runs', { id: 'r1', name: 'demo' })
    expect((await postSteps(agent, 1, 2)).body).toMatchObject({ accepted: 2 })
    await until('something is logged', () => agent.lines('gpu_metrics').length > 0)

    disk.hang()
    const hungAt = Date.now()
    // Begun while nobody knows yet: answered all the same, and before a sender gives up.
    const [steps, end] = await Promise.all([postSteps(agent, 3, 4), post(agent, '/api/v1/runs', { id: 'r2', name: 'other' })])
    expect([steps.status, steps.retryAfter, end.status]).toEqual([503, '2', 503])
    expect(JSON.stringify(steps.body)).toMatch(/disk has not responded/)
    script.update({ lost: [1] })
    const told = await until('the web hook is told of the lost GPU', () => hook.bodies.find((body) => body.includes('gpu_lost')))
    expect(told).toContain('critical')

    const health = await until('it is said', async () => {
      const now = await healthOf(agent)
      return now.rooms.store.state === 'degraded' && now.rooms.alerts.fault !== null ? now : null
    })
    expect(health.status).toBe('degraded')
    expect(health.rooms.store.reason).toMatch(/does not answer, since 2\d{3}-/)
    expect(Math.abs(health.rooms.store.since - hungAt)).toBeLessThan(20_000)
    expect(health.rooms.training.reason).toMatch(/not responded/)
    expect(await agent.text('/metrics')).toMatch(/^gpuwarden_alert_journal_up 0$/m)
    expect((await fetch(`${agent.url}/readyz`)).status).toBe(200)

    // Known by now, so refused at once; what a person decides counts from memory.
    expect((await postSteps(agent, 3, 4)).status).toBe(503)
    const silence = await post(agent, '/api/v1/silences', { matchers: ['gpu=0'], seconds: 3600, comment: 'while it hangs', by: 'me' })
    expect(silence.status).toBe(200)
    const before = (await agent.get<Gpus>('/api/v1/gpus')).at
    await until('samples go on', async () => (await ageOf(agent)) < 2000 && (await agent.get<Gpus>('/api/v1/gpus')).at > before)
    const stream = await fetch(`${agent.url}/api/v1/stream`)
    const reader = stream.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).not.toBe('')
    await reader?.cancel()
    expect(disk.mainThreadWaits()).toBe('')

    disk.answer()
    await until('all is written again', async () => {
      const { rooms } = await healthOf(agent)
      return rooms.store.state === 'ok' && rooms.alerts.fault === null
    })
    expect((await postSteps(agent, 3, 4, 5)).status).toBe(200)
    await agent.stop('SIGKILL')

    const next = (await begin(disk, hook.url)).agent
    const { silences } = await next.get<{ silences: { comment: string }[] }>('/api/v1/silences')
    expect(silences.map(({ comment }) => comment)).toEqual(['while it hangs'])
    const { alerts } = await next.get<AlertList>('/api/v1/alerts')
    expect(alerts.find(({ fingerprint }) => fingerprint.startsWith('gpu_lost'))).toMatchObject({ told: ['hook'] })
    expect((await postSteps(next, 1, 2, 3, 4, 5)).body).toMatchObject({ accepted: 0, duplicates: 5 })
    await next.stop()
    const logged = next.lines('training_metrics').filter(({ run_id, run }) => (run_id ?? run) === 'r1')
    expect(logged.map((line) => Number(line.step)).sort()).toEqual([1, 2, 3, 4, 5])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('does not keep the agent from ending at %s, and what is lost is said', async (signal) => {
    const disk = new HungDisk(library)
    const { agent } = await begin(disk)
    await until('something is logged', () => agent.lines('gpu_metrics').length > 0)
    disk.hang()
    const startedAt = Date.now()
    const ended = await agent.stop(signal)
    // Far below what systemd allows, with room for a slow machine.
    expect(Date.now() - startedAt).toBeLessThan(15_000)
    expect(ended.signal).toBe('SIGTERM')
    expect(ended.stderr).toMatch(/gpuwarden: .* does not answer, since 2.*could not be written/)
    expect(disk.mainThreadWaits()).toBe('')
  })

  it('lets the agent start, says so, and is used as soon as it answers', async () => {
    const disk = new HungDisk(library)
    disk.hang()
    const options = ['--source', 'demo', '--interval', '0.2', '--port', '0', '--log-dir', disk.root]
    const child = spawn(process.execPath, [PROGRAM, 'monitor', ...options], {
      env: { PATH: process.env.PATH, ...disk.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (data) => {
      stderr += data
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const watching = await until('it watches', () => stderr.split('\n').find((line) => line.includes('gpuwarden is watching')))
    const { url } = JSON.parse(watching) as { url: string }
    const get = async (path: string) => await fetch(url + path)
    const store = async () => ((await (await get('/api/v1/health')).json()) as Health).rooms.store
    expect(await store()).toMatchObject({ state: 'degraded' })
    expect((await get('/api/v1/runs')).status).toBe(503)
    expect(stderr).toMatch(/does not answer \(a network disk whose server is gone\?\): monitoring continues/)
    expect(disk.mainThreadWaits()).toBe('')
    disk.answer()
    await until(
      'the folder is used',
      async () => (await store()).state === 'ok' && readdirSync(disk.root).some((name) => name.startsWith('gpu_metrics')),
    )
    await until('runs are there', async () => (await get('/api/v1/runs')).ok)
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(readFileSync(join(disk.root, 'gpu_monitor.log'), 'utf8')).toContain('gpuwarden stops')
  })
})
