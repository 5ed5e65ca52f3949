/** The whole path, with the real program: source → sampler → agent → log, /metrics, API. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from './program.ts'

interface SourceState {
  source: string
  state: string
  since: number
  message: string | null
  restarts: number
  pid: number
  samples: number
}
interface Health {
  status: string
  sources: (SourceState & { ageMs: number | null })[]
  rooms: { store: { state: string; reason: string } | null }
}
interface Gpus {
  gpus: {
    info: { label: string; provenance: string; name: string }
    sample: { state: string; memoryUsedBytes: number | null } | null
    ageMs: number
    live: boolean
  }[]
}

const agents: RunningAgent[] = []
async function start(args: string[], env: NodeJS.ProcessEnv = {}, logDir?: string): Promise<RunningAgent> {
  const agent = await RunningAgent.start(args, env, logDir)
  agents.push(agent)
  return agent
}
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    agent.child.kill('SIGKILL')
    await agent.ended
  }
})

const source = async (agent: RunningAgent, name: string) =>
  (await agent.get<Health>('/api/v1/health')).sources.find((one) => one.source === name)

describe('monitor with simulated GPUs', () => {
  it('stands in where there is no GPU and somebody wants to see some, and every surface says so', async () => {
    const agent = await start(['--or-demo', '--interval', '0.1'], { GPUWARDEN_ROOT: join(FIXTURES, 'empty') })
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    const { gpus } = await agent.get<Gpus>('/api/v1/gpus')
    expect(gpus.length).toBe(8)
    for (const { info, live } of gpus) expect([info.provenance, live, /simulated/i.test(info.name)]).toEqual(['simulated', true, true])
    const metrics = await agent.text('/metrics')
    expect(metrics).toMatch(/^gpu_utilization_percent\{[^}]*simulated="true"[^}]*\} /m)
    expect(metrics).toMatch(/^gpuwarden_simulated 1$/m)
    await until('it has looked twice', async () => ((await source(agent, 'demo'))?.samples ?? 0) > 1)
    const { code } = await agent.stop()
    expect(code).toBe(0)
    const lines = agent.lines('gpu_metrics')
    expect(lines.length).toBeGreaterThan(2)
    for (const line of lines) expect(line.provenance).toBe('simulated')
    expect(Object.keys(lines[0] ?? {}).slice(0, 9)).toEqual([
      'timestamp',
      'gpu_index',
      'utilization_percent',
      'memory_used_mb',
      'memory_total_mb',
      'memory_percent',
      'temperature_celsius',
      'power_draw_watts',
      'fan_speed_percent',
    ])
    const log = readFileSync(join(agent.logDir, 'gpu_monitor.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(new Set(log.map((line) => line.correlation_id)).size).toBe(1)
    expect(log.at(-1).msg).toBe('gpuwarden stops')
  })

  it('ends cleanly with --duration and on Ctrl-C', async () => {
    const logDir = temporaryFolder()
    const timed = await run([
      'monitor',
      '--source',
      'demo',
      '--duration',
      '1',
      '--interval',
      '0.2',
      '--port',
      '0',
      '--log-dir',
      logDir,
      '--quiet',
    ])
    expect([timed.code, timed.stdout, timed.stderr]).toEqual([0, '', ''])
    expect(readdirSync(logDir).some((name) => name.startsWith('gpu_metrics_'))).toBe(true)
    const interrupted = await start(['--source', 'demo'])
    expect((await interrupted.stop('SIGINT')).code).toBe(0)
  })

  it('fills its history again from the files of an earlier run', async () => {
    const first = await start(['--source', 'demo', '--interval', '0.1'])
    await until('there are samples', async () => ((await source(first, 'demo'))?.samples ?? 0) > 10)
    await first.stop()
    const recorded = first.lines('gpu_metrics').filter((line) => line.gpu_index === 0)
    const second = await start(['--source', 'demo', '--interval', '0.5'], {}, first.logDir)
    const before = Date.parse(String(recorded.at(-1)?.timestamp))
    const answer = await until('the old samples are back', async () => {
      const { data } = await second.get<{ data: (number | null)[][] }>(
        `/api/v1/history?gpu=0&field=memoryUsedBytes&from=${before - 600_000}&to=${before}`,
      )
      return (data[1]?.filter((value) => value !== null).length ?? 0) > 0 ? data : null
    })
    expect(answer[0]?.length).toBe(answer[1]?.length)
  })

  it('leaves no sampler behind when it is killed', async () => {
    const agent = await start(['--source', 'demo'])
    const sampler = await until('the sampler is known', async () => (await source(agent, 'demo'))?.pid)
    expect(existsSync(`/proc/${sampler}`)).toBe(true)
    await agent.stop('SIGKILL')
    await until('the sampler is gone', () => !existsSync(`/proc/${sampler}`))
  })
})

describe('monitor with a recording', () => {
  it('plays it to the end, and the log it writes is the recording again', async () => {
    const agent = await start(['--source', `replay:${join(FIXTURES, 'traces/healthy')}`, '--speed', 'max'])
    await until('it is over', async () => (await source(agent, 'replay'))?.state === 'ended')
    await agent.stop()
    const lines = agent.lines('gpu_metrics')
    expect(lines.length).toBeGreaterThan(400)
    expect(new Set(lines.map((line) => line.provenance))).toEqual(new Set(['replay']))
    expect(agent.lines('training_metrics').length).toBeGreaterThan(1000)
  })
})

describe('monitor with a failing driver', () => {
  const library = buildFakeNvml()
  const withDriver = async (values: Parameters<typeof fakeNvmlScript>[0], args: string[] = []) => {
    const script = fakeNvmlScript(values)
    const env = { GPUWARDEN_NVML: library, GPUWARDEN_RESTART_FIRST: '0.2', GPUWARDEN_RESTART_MOST: '0.5', ...script.env }
    const agent = await start(['--source', 'nvidia', '--interval', '0.1', '--deadline', '1', ...args], env)
    await until('it is ready', async () => (await fetch(`${agent.url}/readyz`)).ok)
    return { script, agent }
  }

  it('outlives a call that never returns: keeps serving, says since when, serves no stale value, and recovers', async () => {
    const { script, agent } = await withDriver({ gpus: 2 })
    expect(await agent.text('/metrics')).toMatch(/^gpu_memory_used_mb\{/m)
    const before = (await source(agent, 'nvidia'))?.pid
    const hungAt = Date.now()
    script.update({ hang: 'nvmlDeviceGetMemoryInfo_v2' })
    const state = await until('the hang is seen', async () => {
      const one = await source(agent, 'nvidia')
      return one?.state === 'not_responding' ? one : null
    })
    expect(state.since).toBeGreaterThan(hungAt - 1500)
    expect(state.message).toMatch(/not responding/)
    expect((await fetch(`${agent.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${agent.url}/readyz`)).status).toBe(503)
    const metrics = await agent.text('/metrics')
    expect(metrics).toMatch(/^gpuwarden_up\{source="nvidia"\} 0$/m)
    expect(metrics).not.toMatch(/^gpu_memory_used_mb\{/m)
    const { gpus } = await agent.get<Gpus>('/api/v1/gpus')
    expect(gpus.map((gpu) => gpu.live)).toEqual([false, false])
    // The innocent go on: the host source moved to a new process and is sampled again.
    await until('the host source is back', async () => {
      const host = await source(agent, 'host')
      return host?.state === 'ok' && host.pid !== before
    })
    script.update({ hang: '' })
    await until('it recovered', async () => (await source(agent, 'nvidia'))?.state === 'ok')
    await until('values are back', async () => /^gpu_memory_used_mb\{/m.test(await agent.text('/metrics')))
    expect((await source(agent, 'nvidia'))?.restarts).toBeGreaterThan(0)
  })

  it('outlives a call that crashes the process', async () => {
    const { script, agent } = await withDriver({ gpus: 1 })
    script.update({ crash: 'nvmlDeviceGetUtilizationRates' })
    const state = await until('the crash is seen', async () => {
      const one = await source(agent, 'nvidia')
      return one?.state === 'crashed' ? one : null
    })
    expect(state.message).toMatch(/SIGSEGV/)
    script.update({ crash: '' })
    await until('it recovered', async () => (await source(agent, 'nvidia'))?.state === 'ok')
  })

  it('keeps the row of a lost GPU, marked, and goes on with the others', async () => {
    const { script, agent } = await withDriver({ gpus: 3 })
    script.update({ lost: [1] })
    const gpus = await until('the loss is seen', async () => {
      const all = (await agent.get<Gpus>('/api/v1/gpus')).gpus
      return all[1]?.sample?.state === 'lost' ? all : null
    })
    expect(gpus.map((gpu) => gpu.sample?.state)).toEqual(['ok', 'lost', 'ok'])
    expect(gpus[1]?.sample?.memoryUsedBytes).toBe(null)
    expect(await agent.text('/metrics')).not.toMatch(/^gpu_memory_used_mb\{gpu="1"/m)
    expect((await source(agent, 'nvidia'))?.state).toBe('ok')
    await agent.stop()
    expect(agent.lines('gpu_events').map((line) => line.event)).toContain('lost')
  })

  it('reports and retries a driver that cannot be opened, instead of showing simulated GPUs', async () => {
    const script = fakeNvmlScript({ init: 18 })
    const agent = await start(['--interval', '0.1'], { GPUWARDEN_NVML: library, GPUWARDEN_RESTART_FIRST: '0.2', ...script.env })
    const state = await until('the failure is seen', async () => {
      const one = await source(agent, 'nvidia')
      return one?.state === 'failed' ? one : null
    })
    expect(state.message).toMatch(/version|mismatch/i)
    expect((await agent.get<Gpus>('/api/v1/gpus')).gpus).toEqual([])
    script.update({ init: 0 })
    await until('it recovered', async () => (await source(agent, 'nvidia'))?.state === 'ok')
  })
})

describe('wrong input', () => {
  it.each([
    [['--frobnicate'], 2, /unknown option '--frobnicate'/],
    [['monitor', '--interval', '0'], 2, /^gpuwarden: interval \(from flag --interval\)/m],
    [['monitor', '--duration', 'long'], 2, /--duration/],
    [['monitor', '--config', '/nonexistent.yaml'], 2, /\/nonexistent\.yaml/],
    [['monitor', '--gpu', '-1', '--source', 'demo'], 2, /--gpu: expected the index of a GPU, 0 or more; got "-1"/],
    [['monitor', '--gpu', '0', '--devices', '1', '--source', 'demo'], 2, /--gpu and --devices exclude each other/],
    [['monitor', '--gpu', '7', '--source', 'demo', '--port', '0'], 3, /there is no GPU 7; there are: 0, 1/],
    [['status', '--gpu', '7', '--source', 'demo'], 3, /there is no GPU 7; there are: 0, 1/],
    [['monitor', '--host', '0.0.0.0', '--source', 'demo'], 2, /token/],
    [['monitor', '--port', '0', '--source', 'replay:/nonexistent'], 3, /\/nonexistent/],
    [['nonsense'], 2, /unknown command 'nonsense'/],
  ] as [string[], number, RegExp][])('%j ends with code %i', async (args, code, message) => {
    const result = await run(args)
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toMatch(/\n\s+at /)
    expect(result.code).toBe(code)
  })

  it('says which port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const result = await run(['monitor', '--source', 'demo', '--port', String(port)])
    server.close()
    expect(result.code).toBe(4)
    expect(result.stderr).toContain(String(port))
    expect(result.stderr).toContain('--port')
  })

  it('goes on with the GPUs that are there when others were asked for as well', async () => {
    const agent = await start(['--source', 'demo', '--devices', '1', '7'])
    expect((await agent.get<Gpus>('/api/v1/gpus')).gpus.map(({ info }) => info.label)).toEqual(['1'])
    expect((await agent.stop()).stderr).toMatch(/there is no GPU 7, which was requested/)
  })

  it.skipIf(!existsSync('/proc/self'))('does not try for ever to make a log folder that cannot be made', async () => {
    const agent = await start(['--source', 'demo'], {}, '/proc/gpuwarden/logs')
    expect((await agent.get<Gpus>('/api/v1/gpus')).gpus).toHaveLength(2)
    expect((await agent.stop()).code).toBe(0)
  })

  it('keeps monitoring when the log folder cannot be written', async () => {
    const logDir = join(temporaryFolder(), 'a-file')
    writeFileSync(logDir, '')
    const agent = await start(['--source', 'demo', '--interval', '0.1'], {}, logDir)
    const health = await until('the fault is seen', async () => {
      const { store } = (await agent.get<Health>('/api/v1/health')).rooms
      return store?.state === 'degraded' ? store : null
    })
    expect(health.reason).toBeTruthy()
    expect((await agent.get<Health>('/api/v1/health')).status).toBe('degraded')
    expect((await agent.get<Gpus>('/api/v1/gpus')).gpus[0]?.live).toBe(true)
    rmSync(logDir)
    await until('writing resumed', () => existsSync(logDir) && readdirSync(logDir).some((name) => name.startsWith('gpu_metrics_')), 60_000)
  })
})
