/** What the web UI stands on, with the real program: its files, signing in, the past, and what is told of the machine. */
import { spawn } from 'node:child_process'
import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from './fake-nvml/index.ts'
import { RunningAgent, run, temporaryFolder, until } from './program.ts'

const TOKEN = 'correct-horse-battery'
const SCRIPT = `console.log('web UI')\n`.repeat(200)

const agents: RunningAgent[] = []
async function start(args: string[] = [], env: NodeJS.ProcessEnv = {}, logDir?: string): Promise<RunningAgent> {
  const agent = await RunningAgent.start(['--source', 'demo', '--interval', '0.1', ...args], env, logDir)
  agents.push(agent)
  return agent
}
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    agent.child.kill('SIGKILL')
    await agent.ended
  }
})

function webFolder(): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<!doctype html><script type="module" src="/assets/index-Ab12Cd34.js"></script>\n')
  writeFileSync(join(folder, 'assets', 'index-Ab12Cd34.js'), SCRIPT)
  return folder
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/** Unlike fetch it takes a path as it is, and leaves the encoding to us. */
function ask(agent: RunningAgent, path: string, headers: Record<string, string> = {}, method = 'GET', body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(agent.url)
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const json = <T = Record<string, unknown>>({ bytes }: Answer) => JSON.parse(bytes.toString()) as T

interface Processes {
  processes: { pid: number; gpu: string; info: { startedAt: number; user: string } | null }[]
}

describe('the web UI’s server', () => {
  it('serves the files to everybody and the data to who signed in', async () => {
    const agent = await start(['--token', TOKEN], { GPUWARDEN_SERVER_WEB_DIR: webFolder() })
    const page = await ask(agent, '/')
    expect([page.status, page.headers['cache-control']]).toEqual([200, 'no-cache'])
    expect((await ask(agent, '/', { 'if-none-match': String(page.headers.etag) })).status).toBe(304)
    const script = await ask(agent, '/assets/index-Ab12Cd34.js', { 'accept-encoding': 'gzip, br' })
    expect([script.headers['content-encoding'], script.headers['cache-control']]).toEqual(['br', 'public, max-age=31536000, immutable'])
    expect(brotliDecompressSync(script.bytes).toString()).toBe(SCRIPT)
    for (const path of ['/assets/../../etc/passwd', '/assets/%2e%2e/%2e%2e/etc/passwd', '/api/v1/gpus', '/api/v1/config', '/api/v1/doctor'])
      expect((await ask(agent, path)).status, path).toBe(401)

    expect(json(await ask(agent, '/api/v1/session'))).toMatchObject({ required: true, signedIn: false, hostname: null, version: null })
    const typed = { 'content-type': 'application/json' }
    const wrong = await ask(agent, '/api/v1/session', typed, 'POST', '{"token":"guess"}')
    expect(wrong.status).toBe(401)
    const right = await ask(agent, '/api/v1/session', typed, 'POST', JSON.stringify({ token: TOKEN }))
    const cookie = String(right.headers['set-cookie']).split(';', 1)[0] ?? ''
    expect(cookie.startsWith(`gpuwarden_session_${new URL(agent.url).port}=`)).toBe(true)
    expect(json(await ask(agent, '/api/v1/session', { cookie }))).toMatchObject({
      signedIn: true,
      canKill: false,
      version: expect.any(String),
    })
    for (const path of ['/api/v1/gpus', '/metrics', '/api/v1/config']) expect((await ask(agent, path, { cookie })).status, path).toBe(200)

    const stream = await fetch(`${agent.url}/api/v1/stream?types=tick`, { headers: { cookie } })
    expect(stream.status).toBe(200)
    await stream.body?.cancel()
    const silence = JSON.stringify({ matchers: ['gpu=0'], seconds: 60, comment: 'x', by: 'ada' })
    expect((await ask(agent, '/api/v1/silences', { ...typed, cookie }, 'POST', silence)).status).toBe(403)
    expect((await ask(agent, '/api/v1/silences', { ...typed, cookie, origin: agent.url }, 'POST', silence)).status).toBe(200)
    const { stderr } = await agent.stop()
    expect(stderr).not.toContain(TOKEN)
  })

  it('says of the configuration what the command says', async () => {
    const env = { GPUWARDEN_HISTORY_HOURS: '12', EMAIL_PASSWORD: 'hunter2hunter2' }
    const logDir = temporaryFolder()
    const agent = await start([], env, logDir)
    const told = await agent.get<{ settings: { key: string; value: unknown; from: string }[] }>('/api/v1/config')
    const { stdout } = await run(['config', '--json', '--source', 'demo', '--interval', '0.1', '--port', '0', '--log-dir', logDir], env)
    expect(told).toEqual(JSON.parse(stdout))
    expect(told.settings.find(({ key }) => key === 'history.hours')).toMatchObject({
      value: 12,
      from: 'environment GPUWARDEN_HISTORY_HOURS',
    })
    expect(JSON.stringify(told)).not.toContain('hunter2')
  })

  it('examines the machine in a process of its own, and knows its own port', async () => {
    const agent = await start()
    const answer = await agent.get<{ at: number; tookMs: number; checks: { name: string; state: string; message: string }[] }>(
      '/api/v1/doctor',
    )
    const names = answer.checks.map(({ name }) => name)
    for (const name of ['node', 'koffi', 'port', 'log folder']) expect(names).toContain(name)
    const port = answer.checks.find(({ name }) => name === 'port')
    expect([port?.state, port?.message]).toEqual(['ok', expect.stringContaining(`${new URL(agent.url).port} is served by gpuwarden`)])
    expect(answer.checks.find(({ name }) => name === 'log folder')?.message).toContain(agent.logDir)
    expect((await agent.get<{ at: number }>('/api/v1/doctor?fresh=1')).at).toBe(answer.at)
    const files = await agent.get<{ files: { url: string; title: string }[] }>('/api/v1/grafana')
    expect(files.files.length).toBeGreaterThanOrEqual(4)
    const board = await ask(agent, files.files[0]?.url ?? '')
    expect(board.headers['content-disposition']).toMatch(/^attachment; filename="[\w-]+\.json"$/)
    expect(json(board).title).toBe(files.files[0]?.title)
  })

  it('returns the memory of processes over time', async () => {
    const agent = await start(['--demo-gpus', '2'])
    const answer = await until('there is a process', async () => {
      const found = await agent.get<{ at: number[]; processes: { pid: number; memoryUsedBytes: (number | null)[] }[] }>(
        '/api/v1/processes/history?gpu=0',
      )
      return found.processes.length > 0 && found
    })
    const { processes } = await agent.get<Processes>('/api/v1/processes')
    const known = new Set(processes.map(({ pid }) => pid))
    for (const { pid, memoryUsedBytes } of answer.processes) {
      expect(known.has(pid)).toBe(true)
      expect(memoryUsedBytes).toHaveLength(answer.at.length)
      expect(memoryUsedBytes.some((bytes) => bytes !== null && bytes > 0)).toBe(true)
    }
  })

  it('remembers findings over a restart, from the log', async () => {
    const logDir = temporaryFolder()
    const now = Date.now()
    const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString()
    const line = (fingerprint: string, at: number, state: string) =>
      JSON.stringify({
        at: ago(at),
        since: ago(60),
        fingerprint,
        detector: 'thermal',
        severity: 'warning',
        state,
        message: `said ${at} min ago`,
      })
    const stamp = ago(61).replace(/[-:]/g, '').replace('T', '_').slice(0, 15)
    const lines = [line('a', 50, 'active'), line('b', 45, 'active'), line('a', 40, 'active'), line('a', 30, 'resolved')]
    writeFileSync(join(logDir, `findings_${stamp}.jsonl`), `${lines.join('\n')}\n`)
    const agent = await start([], {}, logDir)
    interface Past {
      findings: { fingerprint: string; at: number; state: string; message: string }[]
    }
    const past = await until('the log is read', async () => {
      const { findings } = await agent.get<Past>('/api/v1/findings/history')
      return findings.length > 0 && findings
    })
    expect(past.map(({ fingerprint, state, message }) => [fingerprint, state, message])).toEqual([
      ['a', 'resolved', 'said 40 min ago'],
      ['b', 'resolved', 'said 45 min ago'],
    ])
    const minutes = past.map(({ at }) => (now - at) / 60_000)
    expect(minutes).toEqual([30, 45])
    expect(await agent.get('/api/v1/findings/history?from=-35m')).toMatchObject({ findings: [{ fingerprint: 'a' }] })
  })

  it('does not signal simulated processes, and says that it tried', async () => {
    const agent = await start(['--token', TOKEN], { GPUWARDEN_SERVER_ALLOW_KILL: 'true' })
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const process = await until('there is a process with an owner', async () => {
      const { processes } = json<Processes>(await ask(agent, '/api/v1/processes', headers))
      return processes.find(({ info }) => info !== null)
    })
    expect(json(await ask(agent, '/api/v1/session', headers))).toMatchObject({ canKill: true })
    const body = JSON.stringify({ signal: 'SIGKILL', startedAt: process.info?.startedAt })
    const answer = await ask(agent, `/api/v1/processes/${process.pid}/signal`, headers, 'POST', body)
    expect([answer.status, json<{ error: { code: string } }>(answer).error.code]).toEqual([409, 'conflict'])
    const { stderr } = await agent.stop()
    const line = stderr.split('\n').find((text) => text.includes('no signal was sent to a process'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      pid: String(process.pid),
      user: process.info?.user,
      result: 'conflict',
      level: 'warn',
    })
  })

  // Elsewhere the numbers that a driver gives are not those of this namespace, and nobody is looked up by them.
  const isFirstNamespace = readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]'
  it.skipIf(!isFirstNamespace)('ends a process that is on a GPU (needs the first PID namespace)', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    const ended = new Promise<string | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    try {
      const script = fakeNvmlScript({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
      const env = { GPUWARDEN_NVML: buildFakeNvml(), GPUWARDEN_SERVER_ALLOW_KILL: 'true', ...script.env }
      const agent = await start(['--source', 'nvidia', '--token', TOKEN], env)
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
      const found = await until('the process is known', async () => {
        const { processes } = json<Processes>(await ask(agent, '/api/v1/processes', headers))
        return processes.find(({ pid, info }) => pid === child.pid && info !== null)
      })
      const send = (startedAt: number) =>
        ask(agent, `/api/v1/processes/${child.pid}/signal`, headers, 'POST', JSON.stringify({ signal: 'SIGTERM', startedAt }))
      const startedAt = found.info?.startedAt ?? 0
      expect(json<{ error: { code: string } }>(await send(startedAt - 5000)).error.code).toBe('process_changed')
      expect(json(await send(startedAt))).toMatchObject({ pid: child.pid, signal: 'SIGTERM' })
      expect(await ended).toBe('SIGTERM')
      script.remove()
    } finally {
      child.kill('SIGKILL')
    }
  })
})
