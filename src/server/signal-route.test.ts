import { type ChildProcess, spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ProcessView } from '../core/model.ts'
import { ask, json, outcome } from './ask.fixture.ts'
import { gpuInfo, gpuSample, NOW, processInfo, processView, type Running, sourceHealth, startServer } from './pretend-agent.contract.ts'
import type { ProcessControl } from './signal-route.ts'

const TOKEN = 'a-token-nobody-guesses'
const STARTED = NOW - 60_000
const ALLOWED = { 'server.token': TOKEN, 'server.allow_kill': true } as const
const SAME: ProcessControl = { identify: () => ({ ok: true }) }

const opened: (() => unknown)[] = []
const victims = new Set<number>()
const realKill = process.kill.bind(process)

// A fault in what is tested here must never reach a process that is not ours: no signal leaves but to what this file has started.
beforeEach(() => {
  vi.spyOn(process, 'kill').mockImplementation((pid, name) => {
    if (!victims.has(pid)) throw new Error(`a test would have sent ${name} to ${pid}`)
    return realKill(pid, name)
  })
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of opened.splice(0)) await close()
  victims.clear()
})

/** A process that waits for its end. */
async function victim(): Promise<{ readonly pid: number; readonly ended: Promise<string | null> }> {
  const child: ChildProcess = spawn(process.execPath, ['-e', "console.log('up'); setInterval(() => {}, 1000)"], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  opened.push(() => child.kill('SIGKILL'))
  const ended = new Promise<string | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)))
  if (child.pid !== undefined) victims.add(child.pid)
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  return { pid: child.pid ?? 0, ended }
}

async function start(views: readonly ProcessView[], settings: object = ALLOWED, control: ProcessControl | null = SAME): Promise<Running> {
  const running = await startServer(control ? { processControl: control } : {}, settings)
  running.agent.processes = () => views
  opened.push(() => running.server.close())
  return running
}

const viewOf = (pid: number, info: Partial<ReturnType<typeof processInfo>> | null = {}): ProcessView => ({
  ...processView(0),
  pid,
  info: info && { ...processInfo(pid), ...info },
})

const signal = (running: Running, pid: number | string, body: object = { signal: 'SIGTERM', startedAt: STARTED }) =>
  ask(running.port, `/api/v1/processes/${pid}/signal`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify(body),
  })

const canKill = async ({ port }: Running) =>
  json<{ canKill: boolean }>(await ask(port, '/api/v1/session', { headers: { authorization: `Bearer ${TOKEN}` } })).canKill

const tries = ({ log }: Running) => log.lines.filter(({ fields }) => 'result' in fields)

describe('signalling a process', () => {
  it('ends it, and says in the log who did what', async () => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
      const { pid, ended } = await victim()
      const running = await start([viewOf(pid, { command: ['python', 'x'.repeat(300)] })])
      expect(await canKill(running)).toBe(true)
      const answer = await signal(running, pid, { signal: name, startedAt: STARTED })
      expect(json(answer)).toEqual({ pid, signal: name, sentAt: NOW })
      expect(await ended).toBe(name)
      expect(tries(running)).toMatchObject([
        {
          level: 'warn',
          fields: { pid: String(pid), signal: name, user: 'ada', result: 'sent', address: expect.stringContaining('127.0.0.1') },
        },
      ])
      expect(tries(running)[0]?.fields.command).toBe(`python ${'x'.repeat(193)}`)
    }
  })

  it('is possible only when it is allowed and a token is configured', async () => {
    const { pid } = await victim()
    for (const [settings, control] of [
      [{ 'server.token': TOKEN }, SAME],
      [{ 'server.allow_kill': true }, SAME],
      [ALLOWED, null],
    ] as const) {
      const running = await start([viewOf(pid)], settings, control)
      expect(await canKill(running)).toBe(false)
      expect(outcome(await signal(running, pid))).toBe('403 kill_disabled')
      expect(tries(running)).toMatchObject([{ level: 'warn', fields: { result: 'kill_disabled', user: 'ada' } }])
    }
    expect(() => process.kill(pid, 0)).not.toThrow()
  })

  it('needs the token, or a session and a page of this server', async () => {
    const { pid } = await victim()
    const { port } = await start([viewOf(pid)])
    const headers = { 'content-type': 'application/json' }
    const signedIn = await ask(port, '/api/v1/session', { method: 'POST', headers, body: JSON.stringify({ token: TOKEN }) })
    const cookie = signedIn.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
    const body = JSON.stringify({ signal: 'SIGKILL', startedAt: STARTED })
    const post = async (more: object) =>
      outcome(await ask(port, `/api/v1/processes/${pid}/signal`, { method: 'POST', headers: { ...headers, ...more }, body }))
    expect(await post({})).toBe('401 missing_token')
    expect(await post({ cookie })).toBe('403 cross_site')
    expect(await post({ cookie, origin: 'http://evil.com' })).toBe('403 cross_site')
    expect(() => process.kill(pid, 0)).not.toThrow()
    expect(await post({ cookie, origin: `http://localhost:${port}` })).toBe('200')
  })

  it('does not touch who is on no GPU, or who is somebody else by now', async () => {
    const { pid } = await victim()
    const other = await victim()
    const running = await start([viewOf(pid)])
    for (const name of [other.pid, 0, -1, '1e3', '0x10', 'abc', '99999999999', '..%2f1'])
      expect(outcome(await signal(running, name)), String(name)).toBe('404 unknown_process')
    expect(outcome(await signal(running, pid, { signal: 'SIGTERM', startedAt: STARTED + 1 }))).toBe('409 process_changed')
    const unknown = await start([viewOf(pid, null)])
    expect(outcome(await signal(unknown, pid))).toBe('409 process_changed')
    const reused = await start([viewOf(pid)], ALLOWED, { identify: () => ({ ok: false, reason: 'the number was reused' }) })
    expect(outcome(await signal(reused, pid))).toBe('409 process_changed')
    expect(() => process.kill(pid, 0)).not.toThrow()
    expect(() => process.kill(other.pid, 0)).not.toThrow()
  })

  it('never touches the agent, its samplers or the first process', async () => {
    const { pid } = await victim()
    const running = await start([viewOf(1), viewOf(process.pid), viewOf(pid)])
    running.agent.sources = [sourceHealth({ pid })]
    for (const one of [1, process.pid, pid]) expect(outcome(await signal(running, one)), String(one)).toBe('403 not_permitted')
    expect(() => process.kill(pid, 0)).not.toThrow()
  })

  it('does not touch a process of this machine that a simulation happens to name', async () => {
    const { pid } = await victim()
    for (const provenance of ['simulated', 'replay'] as const) {
      const running = await start([viewOf(pid)])
      running.agent.gpus = () => [{ info: { ...gpuInfo(0), provenance }, sample: gpuSample(0), ageMs: 0, live: true }]
      expect(outcome(await signal(running, pid))).toBe('409 conflict')
    }
    expect(() => process.kill(pid, 0)).not.toThrow()
  })

  it('says that a process has ended', async () => {
    const { pid, ended } = await victim()
    process.kill(pid, 'SIGKILL')
    await ended
    expect(outcome(await signal(await start([viewOf(pid)]), pid))).toBe('404 unknown_process')
  })

  it('takes three signals and nothing else', async () => {
    const { pid } = await victim()
    const running = await start([viewOf(pid)])
    for (const body of [{ signal: 'SIGSTOP', startedAt: STARTED }, { signal: 9, startedAt: STARTED }, { signal: 'SIGTERM' }, [], 'SIGTERM'])
      expect(outcome(await signal(running, pid, body as object)), JSON.stringify(body)).toBe('400 invalid_body')
    expect(() => process.kill(pid, 0)).not.toThrow()
  })

  it('says when a process belongs to somebody else', async () => {
    const { pid } = await victim()
    const running = await start([viewOf(pid)])
    // Whoever runs the tests may be root, to whom the system forbids nothing.
    vi.mocked(process.kill).mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    expect(outcome(await signal(running, pid))).toBe('403 not_permitted')
    expect(process.kill).toHaveBeenCalledWith(pid, 'SIGTERM')
  })
})
