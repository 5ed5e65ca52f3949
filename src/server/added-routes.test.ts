/** The routes that the composition puts beside the server's own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Route } from '../core/route.ts'
import { ask, json, outcome } from './ask.fixture.ts'
import { configRoute } from './config-route.ts'
import { doctorRoute } from './doctor-route.ts'
import { grafanaRoutes } from './grafana-routes.ts'
import { type PastFindingsQuery, pastFindingsRoute } from './past-findings-route.ts'
import { finding, NOW, pretendAgent, type Running, startServer, xid } from './pretend-agent.contract.ts'
import { processHistoryRoute } from './process-history-route.ts'

const opened: Running[] = []
afterEach(async () => {
  for (const { server } of opened.splice(0)) await server.close()
})

async function serve(...routes: Route[]): Promise<Running> {
  const running = await startServer({ routes })
  opened.push(running)
  return running
}

const checked = async (running: Running, path: string) => {
  const answer = await ask(running.port, path)
  const name = path.split('?', 1)[0] ?? ''
  const { answer: schema } = running.server.routes.find((route) => route.path === name) ?? {}
  expect(outcome(answer), path).toBe('200')
  schema?.parse(json(answer))
  return json(answer)
}

describe('/api/v1/config', () => {
  it('gives the rows as they are', async () => {
    const row = { key: 'log.dir', value: './gpu_logs', from: 'default', variable: 'GPUWARDEN_LOG_DIR', help: 'Folder.' }
    const view = { file: null, warnings: ['unknown variable'], settings: [row] }
    expect(await checked(await serve(configRoute(() => view)), '/api/v1/config')).toEqual(view)
  })
})

describe('/api/v1/doctor', () => {
  const check = { name: 'node', state: 'ok', message: 'there', fix: null } as const
  const printed = JSON.stringify({ ok: true, checks: [check] })

  async function setUp(examine: () => Promise<string>) {
    const clock = { now: NOW, runs: 0 }
    const running = await serve(
      doctorRoute({
        now: () => clock.now,
        examine: () => {
          clock.runs++
          return examine()
        },
      }),
    )
    return { clock, running }
  }

  it('looks once a minute, and anew every ten seconds for who asks', async () => {
    const { clock, running } = await setUp(async () => printed)
    expect(await checked(running, '/api/v1/doctor')).toMatchObject({ at: NOW, tookMs: expect.any(Number), checks: [check] })
    clock.now += 9_000
    await checked(running, '/api/v1/doctor?fresh=1')
    expect(clock.runs).toBe(1)
    clock.now += 20_000
    expect(await checked(running, '/api/v1/doctor?fresh=0')).toMatchObject({ at: NOW })
    expect(clock.runs).toBe(1)
    expect(await checked(running, '/api/v1/doctor?fresh=1')).toMatchObject({ at: clock.now })
    expect(clock.runs).toBe(2)
    clock.now += 120_000
    await checked(running, '/api/v1/doctor')
    expect(clock.runs).toBe(3)
    expect(outcome(await ask(running.port, '/api/v1/doctor?fresh=yes'))).toBe('400 invalid_parameter')
  })

  it('looks one at a time', async () => {
    let finish: (text: string) => void = () => undefined
    const { clock, running } = await setUp(
      () =>
        new Promise((resolve) => {
          finish = resolve
        }),
    )
    const asked = Array.from({ length: 5 }, () => ask(running.port, '/api/v1/doctor?fresh=1'))
    await expect.poll(() => clock.runs).toBe(1)
    // Answered at once, on another connection: all five are waiting by then.
    await ask(running.port, '/healthz')
    finish(printed)
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(200)
    expect(clock.runs).toBe(1)
  })

  it('says why there is no result, and tries again later', async () => {
    const said = [Promise.reject(new Error('it was ended after 30 s')), Promise.resolve('no JSON'), Promise.resolve('{"checks":[{}]}')]
    for (const one of said) one.catch(() => undefined)
    const { clock, running } = await setUp(() => said.shift() ?? Promise.resolve(printed))
    for (const words of ['it was ended after 30 s', 'something other', 'something other']) {
      const answer = await ask(running.port, '/api/v1/doctor')
      expect(outcome(answer)).toBe('503 unavailable')
      expect(answer.bytes.toString()).toContain(words)
      clock.now += 11_000
    }
    await checked(running, '/api/v1/doctor')
  })
})

describe('/api/v1/grafana', () => {
  it('lists the dashboards and gives each for download, and nothing beside them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gpuwarden-grafana-'))
    await writeFile(join(folder, 'b-board.json'), '{"title":"Second"}')
    await writeFile(join(folder, 'a-board.json'), '{ "panels": [] }')
    await writeFile(join(folder, 'secret.txt'), 'no')
    const running = await serve(...grafanaRoutes(folder))
    expect(await checked(running, '/api/v1/grafana')).toEqual({
      files: [
        { name: 'a-board.json', title: 'a-board.json', url: '/api/v1/grafana/a-board.json' },
        { name: 'b-board.json', title: 'Second', url: '/api/v1/grafana/b-board.json' },
      ],
    })
    const file = await ask(running.port, '/api/v1/grafana/a-board.json')
    expect(file.headers['content-disposition']).toBe('attachment; filename="a-board.json"')
    expect(file.bytes.toString()).toBe('{ "panels": [] }')
    for (const name of ['secret.txt', 'c.json', '..%2f..%2fetc%2fpasswd', '%2e%2e', 'a-board.json%00'])
      expect(outcome(await ask(running.port, `/api/v1/grafana/${name}`)), name).toBe('404 not_found')
    await rm(folder, { recursive: true })
    expect(await checked(await serve(...grafanaRoutes(folder)), '/api/v1/grafana')).toEqual({ files: [] })
  })
})

describe('/api/v1/findings/history', () => {
  it('asks for what was meant, and refuses what was not', async () => {
    const asked: PastFindingsQuery[] = []
    const state = pretendAgent()
    const past = {
      query: (query: PastFindingsQuery) => {
        asked.push(query)
        return [finding('GPU-0000-1')]
      },
    }
    const running = await serve(pastFindingsRoute({ state, past }))
    const path = '/api/v1/findings/history'
    expect(await checked(running, path)).toMatchObject({ at: NOW, findings: [{ detector: 'oom', evidence: { loss: 'NaN' } }] })
    await checked(running, `${path}?from=-1h&to=now&gpu=1&run=r7&limit=1000`)
    expect(asked).toEqual([
      { from: Number.NEGATIVE_INFINITY, to: NOW, gpu: null, run: null, limit: 200 },
      { from: NOW - 3_600_000, to: NOW, gpu: 'GPU-0000-1', run: 'r7', limit: 1000 },
    ])
    const wrong = {
      'limit=0': 'invalid_parameter',
      'limit=1001': 'invalid_parameter',
      'limit=x': 'invalid_parameter',
      'gpu=7': 'invalid_gpu',
    }
    const more = { 'from=soon': 'invalid_time', 'from=now&to=-1h': 'invalid_range', 'user=ada': 'unknown_parameter' }
    for (const [query, code] of Object.entries({ ...wrong, ...more }))
      expect(outcome(await ask(running.port, `${path}?${query}`)), query).toBe(`400 ${code}`)
  })
})

describe('/api/v1/processes/history', () => {
  it('asks for one GPU and an hour, unless more is said', async () => {
    const asked: object[] = []
    const state = pretendAgent()
    const process = { pid: 7, startedAt: null, user: null, name: 'python', command: null, memoryUsedBytes: [1, null] }
    const past = {
      query: (query: { gpu: string; from: number; to: number }) => {
        asked.push(query)
        return { gpu: query.gpu, stepMs: 10_000, at: [NOW, NOW + 10_000], processes: [process] }
      },
    }
    const running = await serve(processHistoryRoute({ state, past }))
    const path = '/api/v1/processes/history'
    expect(await checked(running, `${path}?gpu=0`)).toMatchObject({ gpu: 'GPU-0000-0', processes: [process] })
    await checked(running, `${path}?gpu=GPU-0000-1&from=-2h&to=-1h`)
    expect(asked).toEqual([
      { gpu: 'GPU-0000-0', from: NOW - 3_600_000, to: NOW },
      { gpu: 'GPU-0000-1', from: NOW - 7_200_000, to: NOW - 3_600_000 },
    ])
    expect(outcome(await ask(running.port, path))).toBe('400 missing_parameter')
    expect(outcome(await ask(running.port, `${path}?gpu=7`))).toBe('400 invalid_gpu')
    state.gpuCount = 1
    await checked(running, path)
  })
})

describe('/api/v1/events', () => {
  it('gives those of a time and of a GPU', async () => {
    const running = await serve()
    const events = [xid('GPU-0000-0'), { ...xid('GPU-0000-1'), at: NOW - 7_200_000 }, { ...xid(null), event: 'log_gap' as const }]
    running.agent.events = () => events
    const count = async (query: string) => ((await checked(running, `/api/v1/events${query}`)).events as object[]).length
    expect(await count('')).toBe(3)
    expect(await count('?from=-1h')).toBe(2)
    expect(await count('?to=-1h')).toBe(1)
    expect(await count('?gpu=0&from=-1h&to=now')).toBe(2)
    expect(await count('?gpu=1')).toBe(2)
    expect(outcome(await ask(running.port, '/api/v1/events?gpu=9'))).toBe('400 invalid_gpu')
    expect(outcome(await ask(running.port, '/api/v1/events?from=x'))).toBe('400 invalid_time')
  })
})
