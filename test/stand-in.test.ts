/** Simulated GPUs are shown only to somebody who looks at a machine without any GPU, and only until one comes. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AMD, gpusOf, type Health, Machine, monitor, NVIDIA } from './machine.ts'
import { BIN, type RunningAgent, run, temporaryFolder, until } from './program.ts'

describe('simulated GPUs', { timeout: 60_000 }, () => {
  const simulated = async (agent: RunningAgent) => (await gpusOf(agent)).filter(({ info }) => info.provenance === 'simulated').length

  it('are not shown by a program that nobody looks at: the host is watched, and it is ready', async () => {
    const agent = await monitor(new Machine().env)
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).status === 200)
    expect(await gpusOf(agent)).toEqual([])
    expect((await agent.get<Health>('/api/v1/health')).status).toBe('ok')
  })

  it.each([
    ['a token', { GPUWARDEN_SERVER_TOKEN: 'a-secret-of-sixteen-letters' }],
    ['a channel', { GPUWARDEN_CHANNELS: JSON.stringify({ team: { type: 'webhook', url: 'http://127.0.0.1:65123/' } }) }],
    ['a push target', { GPUWARDEN_PUSH_OTLP_URL: 'http://127.0.0.1:65123/v1/metrics' }],
  ])('are not shown with %s, even where they were asked for', async (_name, env: NodeJS.ProcessEnv) => {
    const agent = await monitor({ ...new Machine().env, ...env }, ['--or-demo'])
    const metrics = await fetch(`${agent.url}/metrics`, { headers: { authorization: `Bearer ${env.GPUWARDEN_SERVER_TOKEN ?? ''}` } })
    expect(await metrics.text()).toMatch(/^gpuwarden_simulated 0$/m)
  })

  it('are not shown by a service, nor by a run, on a machine without a GPU', async () => {
    const { env } = new Machine()
    const logs = temporaryFolder()
    const ran = await run(['run', '--port', '0', '--log-dir', logs, '--interval', '0.2', '--', 'sleep', '1'], env)
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringMatching(/sleep/)])
    expect(ran.stderr).not.toMatch(/simulated/i)
    const files = readdirSync(logs)
    expect([files.some((name) => name.startsWith('gpu_metrics')), files.some((name) => name.startsWith('host_metrics'))]).toEqual([
      false,
      true,
    ])
    const port = String(20_000 + Math.floor(Math.random() * 20_000))
    const service = spawn(process.execPath, [BIN, 'service', 'run'], {
      env: {
        PATH: process.env.PATH,
        HOME: logs,
        XDG_CONFIG_HOME: '/nonexistent',
        GPUWARDEN_SERVER_PORT: port,
        GPUWARDEN_LOG_DIR: logs,
        ...env,
      },
      stdio: 'ignore',
    })
    onTestFinished(() => void service.kill('SIGKILL'))
    const page = await until('it is ready', async () => {
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
      return ready.ok ? fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text()) : null
    })
    expect(page).toMatch(/^gpuwarden_simulated 0$/m)
  })

  it('are not shown on a machine that has a card', async () => {
    expect(await simulated(await monitor(new Machine({ '0000:01:00.0': NVIDIA }).env, ['--or-demo']))).toBe(0)
  })

  it('are shown by npm start and by top on a machine without one', async () => {
    const scripts = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).scripts
    expect(scripts.start).toBe('node bin/gpuwarden.js monitor --or-demo')
    expect(await simulated(await monitor(new Machine().env, ['--or-demo']))).toBeGreaterThan(0)
    expect((await run(['top', '--once', '--port', '1'], new Machine().env)).stdout).toContain('SIMULATED')
  })

  it('make room for a card that comes', async () => {
    const machine = new Machine()
    const agent = await monitor({ ...machine.env }, ['--or-demo', '--demo-scenario', 'healthy'])
    await until('it is simulated', async () => (await gpusOf(agent)).some(({ info }) => info.provenance === 'simulated'))
    const runs = async () => (await agent.get<{ runs: { id: string; endedAt: number | null }[] }>('/api/v1/runs')).runs
    await until('a simulated run is listed', async () => (await runs()).some(({ endedAt }) => endedAt === null))
    machine.plug('0000:09:00.0', { ...AMD })
    const gpus = await until('the card is there', async () => {
      const all = await gpusOf(agent)
      return all.length > 0 && all.every(({ info }) => info.vendor === 'amd') ? all : null
    })
    await until('no simulated run is left running', async () => (await runs()).every(({ endedAt }) => endedAt !== null))
    expect(gpus.map(({ info, sample }) => [info.provenance, info.index, sample?.state])).toEqual([['live', 0, 'no_driver']])
    machine.unplug('0000:09:00.0')
    await until('it is gone', async () => (await gpusOf(agent)).length === 0)
    await until('nothing is wrong', async () => (await agent.get<Health>('/api/v1/health')).status === 'ok')
  })
})
