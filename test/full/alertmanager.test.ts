/** A real Alertmanager: our alert is active there, and then it is not any more. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { message, resolved } from '../../src/channels/alert-message.fixture.ts'
import { alertmanager } from '../../src/channels/alertmanager.ts'
import type { AlertMessage } from '../../src/kinds.ts'
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
  writeFileSync(join(dir, 'config.yml'), 'route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n')
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const options = [`--config.file=${dir}/config.yml`, `--storage.path=${dir}/data`, `--web.listen-address=127.0.0.1:${port}`]
  child = spawn(PROGRAM, [...options, '--cluster.listen-address='], { stdio: 'ignore' })
  await until('Alertmanager is ready', async () => (await fetch(`${url}/-/ready`)).ok)
})

afterAll(() => {
  child?.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

describe.skipIf(PROGRAM === undefined)(`a real Alertmanager${REASON}`, () => {
  it('shows the alert as active, at one severity at a time, and then no longer', async () => {
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
    expect((await listed())[0]?.annotations).toMatchObject({ owner: 'alice', gpu: '0 NVIDIA H200 (GPU-5f2c)' })
    expect(await channel.deliver(today(resolved, now), stop)).toMatchObject({ ok: true })
    await expect.poll(listed).toEqual([])
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
  })
})
