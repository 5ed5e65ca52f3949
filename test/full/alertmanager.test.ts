/** A real Alertmanager: our alert is active there, and then resolved, which it says to those whom it notifies. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { message, resolved } from '../../src/channels/alert-message.fixture.ts'
import { alertmanager } from '../../src/channels/alertmanager.ts'
import type { AlertMessage } from '../../src/core/alert-contract.ts'
import { buildFakeNvml, fakeNvmlScript } from '../fake-nvml/index.ts'
import { RunningAgent, temporaryFolder, until } from '../program.ts'

const PROGRAM = ['prometheus-alertmanager', 'alertmanager'].find((name) => spawnSync(name, ['--version']).error === undefined)
const REASON = PROGRAM === undefined ? ' (skipped: prometheus-alertmanager is not on the PATH)' : ''
const dir = temporaryFolder()
let child: ChildProcess | null = null
let url = ''

interface Listed {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly status: { readonly state: string }
}

/** What Alertmanager tells its receivers. Its list holds only what is active; that something is resolved it says here. */
interface Notified {
  readonly status: string
  readonly labels: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
}

const notified: Notified[] = []
let receiver: Server | null = null

async function openReceiver(): Promise<number> {
  const server = createHttpServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      notified.push(...(JSON.parse(body) as { alerts: Notified[] }).alerts)
      response.end()
    })
  })
  receiver = server
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const statesOf = (detector: string, severity: string) =>
  notified.filter(({ labels }) => labels.detector === detector && labels.severity === severity).map(({ status }) => status)

async function listed(): Promise<Listed[]> {
  return (await (await fetch(`${url}/api/v2/alerts`)).json()) as Listed[]
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}

/** The fixture is of another day; Alertmanager judges by its own clock. */
function today(what: AlertMessage, now: number): AlertMessage {
  const shift = now - what.at
  const alerts = what.alerts.map((alert) => ({
    ...alert,
    firedAt: alert.firedAt + shift,
    resolvedAt: alert.resolvedAt === null ? null : alert.resolvedAt + shift,
  }))
  return { ...what, at: now, alerts }
}

beforeAll(async () => {
  if (PROGRAM === undefined) return
  const route = 'route:\n  receiver: us\n  group_by: ["..."]\n  group_wait: 0s\n  group_interval: 1s\n'
  const hook = `http://127.0.0.1:${await openReceiver()}/`
  const receivers = `receivers:\n  - name: us\n    webhook_configs:\n      - { url: "${hook}", send_resolved: true }\n`
  writeFileSync(join(dir, 'config.yml'), route + receivers)
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const options = [`--config.file=${dir}/config.yml`, `--storage.path=${dir}/data`, `--web.listen-address=127.0.0.1:${port}`]
  child = spawn(PROGRAM, [...options, '--cluster.listen-address='], { stdio: 'ignore' })
  await until('Alertmanager is ready', async () => (await fetch(`${url}/-/ready`)).ok)
})

afterAll(() => {
  child?.kill('SIGKILL')
  receiver?.close()
  rmSync(dir, { recursive: true, force: true })
})

describe.skipIf(PROGRAM === undefined)(`a real Alertmanager${REASON}`, () => {
  it('shows the alert as active, at one severity at a time, and then as resolved', async () => {
    const channel = alertmanager.open('am', { url, labels: { cluster: 'lab' } }, { env: {}, stateDir: dir })
    const stop = new AbortController().signal
    const now = Date.now()
    const warning: AlertMessage = {
      ...message,
      severity: 'warning',
      alerts: message.alerts.map((alert) => ({ ...alert, finding: { ...alert.finding, severity: 'warning' } })),
    }
    expect(await channel.deliver(today(warning, now - 5000), stop)).toMatchObject({ ok: true })
    const labels = { alertname: 'gpuwarden_memory_leak', severity: 'warning', cluster: 'lab' }
    await expect.poll(listed).toMatchObject([{ labels, status: { state: expect.stringMatching(/active|unprocessed/) } }])
    expect(await channel.deliver(today({ ...message, isFirst: false }, now), stop)).toMatchObject({ ok: true })
    await expect.poll(async () => (await listed()).map((alert) => alert.labels.severity)).toEqual(['critical'])
    await until('it notifies', () => statesOf('memory_leak', 'critical').includes('firing'))
    expect((await listed())[0]?.annotations).toMatchObject({ owner: 'alice', gpu: '0 NVIDIA H200 (GPU-5f2c)' })
    expect(await channel.deliver(today(resolved, now), stop)).toMatchObject({ ok: true })
    await expect.poll(listed).toEqual([])
    await until('it notifies of the end', () => statesOf('memory_leak', 'critical').includes('resolved'))
    expect(statesOf('memory_leak', 'critical')).toEqual(['firing', 'resolved'])
    const end = notified.find(({ status, labels: { severity } }) => status === 'resolved' && severity === 'critical')
    expect(Math.abs(Date.parse(end?.endsAt ?? '') - (today(resolved, now).alerts[0]?.resolvedAt ?? 0))).toBeLessThan(1000)
  })

  it('answers a wrong path for good', async () => {
    const channel = alertmanager.open('am', { url: `${url}/nowhere` }, { env: {}, stateDir: dir })
    expect(await channel.deliver(message, new AbortController().signal)).toMatchObject({ ok: false, retry: false })
  })

  it('hears of a lost GPU from the agent, and of its return', async () => {
    const script = fakeNvmlScript({ gpus: 2 })
    const agent = await RunningAgent.start(['--source', 'nvidia', '--interval', '0.2'], {
      GPUWARDEN_NVML: buildFakeNvml(),
      GPUWARDEN_CHANNELS: JSON.stringify({ am: { type: 'alertmanager', url } }),
      GPUWARDEN_ALERTS_KEEP_FIRING_SECONDS: '0',
      GPUWARDEN_ALERTS_GROUP_SECONDS: '0',
      ...script.env,
    })
    onTestFinished(async () => void (await agent.stop('SIGKILL')))
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    const lost = async () => (await listed()).filter((alert) => alert.labels.detector === 'gpu_lost')
    script.update({ lost: [1] })
    await until('it is active', async () => (await lost())[0]?.status.state === 'active')
    expect(await lost()).toMatchObject([{ labels: { alertname: 'gpuwarden_gpu_lost', severity: 'critical' } }])
    script.update({ lost: [] })
    await until('it is over', async () => (await lost()).length === 0, 50_000)
    await until('it is said to be resolved', () => statesOf('gpu_lost', 'critical').includes('resolved'))
    expect(statesOf('gpu_lost', 'critical')).toEqual(['firing', 'resolved'])
  })
})
