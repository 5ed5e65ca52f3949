/** A recording that is played by the agent, paused, moved and looked at through the API. */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ReplayView } from '../src/server/replay-route.ts'
import { FIXTURES, RunningAgent, run, until } from './program.ts'

const OUT_OF_MEMORY = join(FIXTURES, 'out-of-memory')
const LEAK = join(FIXTURES, 'traces/leak_graph')
const RUN = 'd9d1d91b7e09196e'

/** A replay writes no log by default; the tests' own log folder would make it one that is recorded. */
async function play(path: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = { GPUWARDEN_LOG_ENABLED: 'false' }) {
  const agent = await RunningAgent.start(['--source', `replay:${path}`, ...args], env)
  onTestFinished(async () => {
    await agent.stop('SIGKILL')
  })
  const view = () => agent.get<ReplayView>('/api/v1/replay')
  const steer = async (body: unknown) => {
    const answer = await fetch(`${agent.url}/api/v1/replay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const read = await until('it was read to its end', async () => {
    const now = await view()
    return now.lastAt === null ? null : now
  })
  return { agent, view, steer, firstAt: read.firstAt ?? 0, lastAt: read.lastAt ?? 0, marks: read.marks }
}

const times = async (agent: RunningAgent) =>
  (await agent.get<{ data: number[][] }>('/api/v1/history?gpu=0&field=memoryUsedBytes&from=0')).data[0] ?? []
const findings = async (agent: RunningAgent) =>
  (await agent.get<{ findings: { detector: string }[] }>('/api/v1/findings/history?from=0')).findings.map(({ detector }) => detector)

describe('a recording in the agent', () => {
  it('marks what was found on its time line, before it is played', async () => {
    const { marks, firstAt, lastAt, steer } = await play(LEAK)
    await steer({ playing: false })
    expect(marks.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['leak', 'oom']))
    for (const { at } of marks) expect(at >= firstAt && at <= lastAt).toBe(true)
  })

  it('pauses, goes forward, goes back, and then knows nothing of what comes later', { timeout: 120_000 }, async () => {
    const { agent, view, steer, firstAt, lastAt, marks } = await play(LEAK)
    expect((await steer({ playing: false })).status).toBe(200)
    await until('it is paused', async () => (await view()).state === 'paused')
    const { at: pausedAt } = await view()
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await view()).at).toBe(pausedAt)

    await steer({ at: lastAt })
    const over = await until('it is over', async () => {
      const now = await view()
      return now.state === 'ended' ? now : null
    })
    expect(over).toMatchObject({ at: lastAt, jumps: 1 })
    expect(await findings(agent)).toEqual(expect.arrayContaining(['leak', 'oom']))
    expect(Math.max(...(await times(agent)))).toBe(lastAt)
    const whole = (await agent.get<{ runs: { training: { steps: number } }[] }>('/api/v1/runs')).runs[0]?.training.steps ?? 0
    expect(whole).toBeGreaterThan(400)

    const leakAt = marks.find(({ kind }) => kind === 'leak')?.at ?? 0
    await steer({ at: leakAt - 5000 })
    await until('it went back', async () => (await view()).jumps === 2)
    // From the end one goes back to look, not to play on.
    expect((await view()).state).toBe('paused')
    expect((await view()).at).toBeLessThanOrEqual(leakAt - 5000)
    expect(await findings(agent)).toEqual([])
    const left = await times(agent)
    expect(Math.min(...left)).toBe(firstAt)
    expect(Math.max(...left)).toBeLessThanOrEqual(leakAt - 5000)
    const { runs } = await agent.get<{ runs: { training: { steps: number } }[] }>('/api/v1/runs')
    expect(runs[0]?.training.steps).toBeLessThan(whole / 2)
    expect((await agent.get<{ alerts: unknown[] }>('/api/v1/alerts')).alerts).toEqual([])
    // What was found is found again at the same moment, not twice.
    await steer({ at: leakAt + 1000 })
    await until('it went forward', async () => (await view()).jumps === 3)
    expect(await findings(agent)).toEqual(['leak'])
  })

  it('shows the runs of the folder as they were: running, then dead with its story and its report', { timeout: 120_000 }, async () => {
    const { agent, view, steer, firstAt, lastAt, marks } = await play(OUT_OF_MEMORY, ['--speed', 'max'])
    await until('it is over', async () => (await view()).state === 'ended')
    expect(marks.at(-1)).toMatchObject({ kind: 'run_died', severity: 'critical', run: RUN, at: lastAt })
    expect(marks.slice(0, -1)).toEqual([expect.objectContaining({ kind: 'leak', run: RUN })])
    const dead = await until('its end is known', async () => {
      const one = await agent.get<{ outcome: string | null; name: string; training: { steps: number } }>(`/api/v1/runs/${RUN}`)
      return one.outcome === 'oom' ? one : null
    })
    expect(dead).toMatchObject({ name: 'train.py' })
    expect(dead.training.steps).toBeGreaterThan(20)
    const { findings: said } = await agent.get<{ findings: { message: string; detector: string }[] }>('/api/v1/findings')
    expect(said.find(({ detector }) => detector === 'run_died')?.message).toMatch(
      /train\.py died after 56 s at step 260: out of GPU memory/,
    )
    const report = await fetch(`${agent.url}/api/v1/runs/${RUN}/report.json`)
    expect(await report.json()).toMatchObject({ runId: RUN, outcome: 'oom' })

    await steer({ at: (firstAt + lastAt) / 2 })
    await until('it went back', async () => (await view()).jumps === 1)
    expect(await agent.get(`/api/v1/runs/${RUN}`)).toMatchObject({ endedAt: null, outcome: null, message: null, report: null })
    expect(await findings(agent)).toEqual([])
  })

  it('refuses what is not a wish, and to go back where that would do harm', { timeout: 120_000 }, async () => {
    const { steer, view, firstAt, lastAt, agent } = await play(LEAK, [], {})
    for (const body of ['{}', '{"at":"soon"}', '{"speed":0}', '{"speed":-1}', '{"playing":1}', '{"seek":3}', '[]', 'rubbish'])
      expect((await steer(body)).status, body).toBe(400)
    expect((await steer(JSON.stringify({ at: 1, x: 'y'.repeat(2000) }))).status).toBe(413)
    expect((await steer({ at: lastAt, speed: 'max' })).status).toBe(200)
    await until('it is over', async () => (await view()).state === 'ended')
    expect((await view()).forwardOnly).toMatch(/written to a log/)
    const refused = await steer({ at: firstAt })
    expect(refused.status).toBe(409)
    expect(refused.text).toMatch(/only goes forward/)
    expect((await steer({ playing: true })).status).toBe(409)
    expect((await view()).at).toBe(lastAt)
    const foreign = await fetch(`${agent.url}/api/v1/replay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://elsewhere.example' },
      body: '{"playing":false}',
    })
    expect(foreign.status).toBe(403)
  })

  it('has no such route where nothing is played', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '1'])
    onTestFinished(async () => {
      await agent.stop('SIGKILL')
    })
    expect((await fetch(`${agent.url}/api/v1/replay`)).status).toBe(404)
    expect(await agent.get('/api/v1/accuracy')).toMatchObject({ days: 30, isLogged: true, rows: [] })
  })
})

describe('gpuwarden report of a recording without findings', () => {
  it('runs the detectors, and says so', async () => {
    const { code, stdout } = await run(['report', LEAK, '--json'])
    expect(code).toBe(0)
    const { findings: found, notes } = JSON.parse(stdout) as { findings: { detector: string }[]; notes: string[] }
    expect(found.map(({ detector }) => detector)).toEqual(expect.arrayContaining(['leak', 'oom']))
    expect(notes.join()).toContain('the detectors looked at it for this report')
  })

  it('takes --from and --to, and says what is wrong with them', async () => {
    const span = ['--from', '2026-11-15T06:34:10Z', '--to', '2026-11-15T06:34:40Z']
    const part = JSON.parse((await run(['report', LEAK, '--json', ...span])).stdout) as {
      from: number
      to: number
      findings: { at: number }[]
    }
    expect(part.from).toBeGreaterThanOrEqual(Date.UTC(2026, 10, 15, 6, 34, 10))
    expect(part.to).toBeLessThanOrEqual(Date.UTC(2026, 10, 15, 6, 34, 40))
    expect(part.findings.length).toBeGreaterThan(0)
    for (const { at } of part.findings) expect(at).toBeLessThanOrEqual(part.to)
    const wrong = async (...args: string[]) => run(['report', LEAK, ...args])
    expect(await wrong('--from', 'soon')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--from: expected a time such as .*got "soon"/),
    })
    expect(await wrong('--from', '2026-11-15T06:34:10Z', '--to', '2026-11-15T06:34:10Z')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--from must be before --to'),
    })
    expect(await wrong('--from', '2027-01-01T00:00:00Z')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/has no samples after 2027-01-01 00:00:00 UTC[\s\S]*within the recording/),
    })
  })
})
