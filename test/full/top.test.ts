/** The terminal UI in a real terminal: what it shows, from where, at which size. */
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { FIXTURES, RunningAgent, run, temporaryFolder, until } from '../program.ts'
import { DEMO, endTest, endTmux, hasTmux, nvml, Pane, plainRoot, quote, victim } from './pane.ts'

const ESCAPE = '\u001b'

afterEach(endTest)
afterAll(endTmux)

/** Ended with the test, however that ends. */
async function agentOf(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<RunningAgent> {
  const agent = await RunningAgent.start(args, env)
  onTestFinished(async () => {
    await agent.stop()
  })
  return agent
}

describe.skipIf(!hasTmux)('in a terminal (needs tmux)', () => {
  it('remembers hidden panels', async () => {
    const pane = new Pane(100, 30)
    pane.top(DEMO)
    await pane.shows('Training')
    pane.keys('p')
    await pane.shows('[x] training')
    pane.keys('Down', 'Down', 'Space')
    await pane.shows('[ ] training')
    pane.keys('Escape')
    await pane.shows('Training', false)
    await pane.quit()
    expect(JSON.parse(readFileSync(join(pane.folder, 'config/gpuwarden/top.json'), 'utf8'))).toMatchObject({ hidden: ['training'] })
    pane.top(DEMO)
    await pane.shows('python train.py')
    expect(pane.screen()).not.toContain('Training')
    await pane.quit()
  })

  it('is drawn anew at every size, without anything left behind', async () => {
    const pane = new Pane(160, 50)
    pane.top(`${DEMO} --demo-gpus 2`)
    await pane.shows('python train.py')
    pane.keys('Space')
    for (const [columns, rows] of [
      [80, 24],
      [40, 12],
      [200, 60],
      [41, 13],
      [120, 40],
      [20, 6],
      [80, 24],
    ] as const) {
      pane.resize(columns, rows)
      const bar = new RegExp(`^[^\\n]*SIMULATED(?:.*\\n){${rows - 1}} q Quit`)
      await pane.shows(bar)
      const first = pane.screen()
      pane.keys('F5')
      await new Promise((resolve) => setTimeout(resolve, 400))
      expect(pane.screen(), `${columns}×${rows}`).toBe(first)
    }
    await pane.quit()
  })

  it('takes COLUMNS and LINES where the terminal says 0×0', async () => {
    const pane = new Pane(80, 24)
    pane.shell('stty cols 0 rows 0; stty size')
    await pane.shows('0 0')
    pane.top(DEMO, { COLUMNS: '60', LINES: '14' })
    await pane.shows('SIMULATED')
    await until('the key bar is in row 14', () => pane.screen().split('\n')[13]?.startsWith(' q Quit'))
    await pane.quit()
  })

  it('shows 64 GPUs and scrolls', async () => {
    const pane = new Pane(120, 40)
    pane.top(`${DEMO} --demo-gpus 64`)
    await pane.shows(/GPUs 1–\d+ of 64/)
    pane.keys('BTab')
    pane.keys('End')
    await pane.shows(/GPUs \d+–64 of 64/)
    pane.keys('Home')
    await pane.shows(/GPUs 1–\d+ of 64/)
    await pane.quit()
  })

  it('uses no color with NO_COLOR and nothing but ASCII with --ascii', async () => {
    const pane = new Pane()
    pane.top(`${DEMO} --ascii`, { NO_COLOR: '1' })
    await pane.shows('python train.py')
    expect(pane.colored()).not.toMatch(new RegExp(`${ESCAPE}\\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]`))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: whatever is not ASCII is what is looked for
    expect(pane.screen()).not.toMatch(/[^\u0000-\u007f]/)
    await pane.quit()
  })

  it('ends a real process after asking, and shows names with escape codes as what they are', async () => {
    const root = plainRoot()
    const child = victim(root, '\u001b[2J\u001b[31mevil 日本語 👩‍👧')
    const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
    const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    const pane = new Pane(100, 24)
    pane.top('--source nvidia', { ...env, GPUWARDEN_ROOT: root })
    const screen = await pane.shows('evil')
    expect(screen).toContain('·[2J·[31mevil 日本語')
    expect(screen.split('\n')[0]).toMatch(/driver/)
    pane.keys('Enter')
    await pane.shows('variables, hidden')
    await pane.shows('open files')
    pane.keys('e')
    await pane.shows('PATH=')
    pane.keys('Escape', 'k')
    await pane.shows(`End process ${child.pid}?`)
    pane.keys('Escape')
    await pane.shows('End process', false)
    expect(child.exitCode).toBe(null)
    pane.keys('k')
    await pane.shows('SIGTERM')
    pane.keys('Enter')
    await pane.shows(`SIGTERM sent to process ${child.pid}`)
    expect(await gone).toBe('SIGTERM')
    await pane.quit()
  })

  it('ends nothing with --readonly', async () => {
    const root = plainRoot()
    const child = victim(root)
    const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
    const pane = new Pane()
    pane.top('--source nvidia --readonly', { ...env, GPUWARDEN_ROOT: root })
    await pane.shows('sleep')
    pane.keys('k')
    await pane.shows('is read-only')
    pane.keys('Enter')
    expect(child.exitCode).toBe(null)
    pane.keys('Escape', 'q')
    await pane.shows('ended 0')
  })

  it('says that a GPU is lost, and that the driver does not respond', async () => {
    const { script, env } = nvml({ gpus: 2 })
    const pane = new Pane(100, 30)
    pane.top('--source nvidia --deadline 1', env)
    await pane.shows('age <1 s')
    script.update({ lost: [1] })
    await pane.shows('LOST')
    script.update({ hang: ['nvmlDeviceGetUtilizationRates'] })
    await pane.shows(/nvidia driver not responding since \d\d:\d\d:\d\d/)
    await pane.shows(/last sample \d+ s ago/)
    await pane.quit()
  })

  it('plays a recording: pause, seek, speed', async () => {
    const pane = new Pane(120, 30)
    pane.top(`--source replay:${quote(join(FIXTURES, 'traces/divergence'))}`)
    await pane.shows('REPLAY')
    pane.keys(']', ']', ']')
    await pane.shows(/3\ds x1/)
    pane.keys('Space')
    await pane.shows(/3\ds PAUSED/)
    pane.keys('[')
    await pane.shows(/2\ds PAUSED/)
    pane.keys('+')
    pane.keys('Space')
    await pane.shows(/ x2 /)
    pane.keys('-', '-')
    await pane.shows(/ x0.5 /)
    for (let press = 0; press < 12; press++) pane.keys(']')
    await pane.shows('ENDED')
    await pane.shows(/loss NaN/)
    await pane.quit()
  })

  it('attaches to the agent of this machine, and says when it is gone', async () => {
    const agent = await agentOf(['--source', 'demo', '--demo-gpus', '2'])
    const pane = new Pane(100, 30)
    pane.top('', { GPUWARDEN_SERVER_PORT: new URL(agent.url).port })
    await pane.shows(`agent ${new URL(agent.url).host}`)
    await pane.shows('python train.py')
    await pane.shows('Training')
    await agent.stop()
    await pane.shows('no answer from the agent since')
    await pane.quit()
  })

  it('brings the token to an agent that wants one, and says so when it has none', async () => {
    const token = join(temporaryFolder(), 'token')
    const agent = await agentOf(['--source', 'demo', '--token-file', token])
    const pane = new Pane(100, 30)
    pane.top(`--connect ${agent.url} --token-file ${token}`)
    await pane.shows('python train.py')
    await pane.quit()
    pane.top(`--connect ${agent.url}`)
    await pane.shows('it asks for a token')
    await pane.shows('ended 2')
    await agent.stop()
    pane.top('--connect http://127.0.0.1:1')
    await pane.shows('cannot reach an agent')
    await pane.shows('ended 3')
    expect(existsSync(token)).toBe(true)
  })

  it('gives no token to a stranger that answers on the port of an agent', async () => {
    const seen: (string | undefined)[] = []
    const stranger = createServer((request, response) => {
      seen.push(request.headers.authorization)
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({ status: 'ok', name: 'gpuwarden', version: '0.1.0', sources: [], gpus: [], processes: [], findings: [] }),
      )
    })
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    const { port } = stranger.address() as AddressInfo
    const token = join(temporaryFolder(), 'token')
    const env = { GPUWARDEN_SERVER_PORT: String(port), GPUWARDEN_SERVER_TOKEN_FILE: token, GPUWARDEN_DEMO_GPUS: '1' }
    const agent = await agentOf(['--source', 'demo', '--token-file', token])
    try {
      const pane = new Pane(140, 30)
      pane.top('', env)
      await pane.shows('cannot verify that')
      await pane.shows('sampling here')
      await pane.quit()
      const once = await run(['top', '--once'], env)
      expect(once.stderr).toContain('cannot verify that')
      for (const args of [['alerts'], ['alerts', 'history']]) expect((await run(args, env)).code).not.toBe(0)
      expect(seen.length).toBeGreaterThan(3)
      expect(seen.filter((header) => header !== undefined)).toEqual([])
      // The agent itself is known by its file, and gets it.
      pane.top('', { ...env, GPUWARDEN_SERVER_PORT: new URL(agent.url).port })
      await pane.shows(`agent ${new URL(agent.url).host}`)
      await pane.shows('python train.py')
      await pane.quit()
      expect((await run(['alerts'], { ...env, GPUWARDEN_SERVER_PORT: new URL(agent.url).port })).code).toBe(0)
      // Who names the address answers for it.
      await run(['top', '--once', '--connect', `http://127.0.0.1:${port}`, '--token-file', token])
      expect(seen.at(-1)).toBe(`Bearer ${readFileSync(token, 'utf8').trim()}`)
    } finally {
      await agent.stop()
      stranger.close()
    }
  })

  it('shows the alerts of the agent, acknowledges one, and silences one after a question', async () => {
    const agent = await agentOf(['--source', 'demo', '--demo-gpus', '3', '--demo-scenario', 'all'], {
      GPUWARDEN_ALERTS_PENDING: '0',
    })
    const pane = new Pane(150, 40)
    pane.top('', { GPUWARDEN_SERVER_PORT: new URL(agent.url).port })
    await pane.shows(`agent ${new URL(agent.url).host}`)
    await until('there is an alert', async () => (await agent.get<{ alerts: unknown[] }>('/api/v1/alerts')).alerts.length > 0, 60_000)
    pane.keys('a')
    await pane.shows(/┌─ \d+ alerts? open, \d+ findings?/)
    await pane.shows(/pending|firing/)
    await pane.shows(/intruder +(pending|firing)/)
    pane.keys('Home', 'A')
    await pane.shows(/acknowledged by \S+ until (\S+ )?\d\d:\d\d/)
    pane.keys('S')
    await pane.shows('Silence this alert?')
    pane.keys('Enter')
    await pane.shows('Silence this alert?', false)
    expect((await agent.get<{ silences: unknown[] }>('/api/v1/silences')).silences).toEqual([])
    pane.keys('S')
    await pane.shows('Silence this alert?')
    pane.keys('Down', 'Enter')
    await pane.shows(/silenced until (\S+ )?\d\d:\d\d/)
    expect((await agent.get<{ silences: unknown[] }>('/api/v1/silences')).silences).toHaveLength(1)
    pane.keys('Escape')
    await pane.shows('Esc closes', false)
    await pane.quit()
    pane.top('--readonly', { GPUWARDEN_SERVER_PORT: new URL(agent.url).port })
    await pane.shows('python train.py')
    pane.keys('a')
    await pane.shows(/acknowledged by/)
    pane.keys('A')
    await pane.shows('is read-only')
    pane.keys('Escape')
    await pane.quit()
    await agent.stop()
  })
})
