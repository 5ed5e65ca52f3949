/** Ingest of training runs: the room behind a real server, with a real store, over real sockets. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { applyBatch } from '../src/training/batch.ts'
import { Progress } from '../src/training/progress.ts'
import { SeqRanges } from '../src/training/seq-ranges.ts'
import { TRAINING_DEFAULTS } from '../src/training/settings.ts'
import { parseReceivedStep } from '../src/training/step-line.ts'
import { RunningAgent } from './program.ts'
import { closeAll, line, lines, logged, post, postLines, start, T, type World } from './training-world.ts'

afterEach(closeAll)

describe('a folder of runs that is removed while it is in use', () => {
  it('is made again: after a kill every run and every acknowledged step is there, once', async () => {
    const first = await start(undefined, { lookEveryMs: 0 })
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    await post(`${first.url}/api/v1/runs`, { id: 'r2', name: 'quiet' })
    const to = `${first.url}/api/v1/runs/r1/steps`
    expect((await postLines(to, lines(1, 50))).status).toBe(200)
    rmSync(join(first.dir, 'runs'), { recursive: true })
    expect((await postLines(to, lines(51, 60))).status).toBe(200)
    await expect.poll(() => existsSync(join(first.dir, 'runs', 'r1.progress.json'))).toBe(true)
    await first.crash()
    const second = await start(first.dir)
    await second.training.open()
    const answer = await postLines(`${second.url}/api/v1/runs/r1/steps`, lines(1, 80))
    expect(answer.body).toMatchObject({ accepted: 20, duplicates: 60 })
    await second.store.flush()
    expect(
      logged(first.dir)
        .map(({ step }) => Number(step))
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 80 }, (_, index) => index + 1))
    expect((await fetch(`${second.url}/api/v1/runs/r2`)).status).toBe(200)
  })
})

describe('a run that is resumed with the same PID and numbers from 1', () => {
  it('is told apart by a new session; within one, a batch that is sent twice still counts once', async () => {
    const { url, steps, training } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo', pid: 1 })
    const to = `${url}/api/v1/runs/r1/steps`
    const batch = (session: unknown, from = 1) => lines(from, from + 9, { pid: 1, ...(session === undefined ? {} : { session }) })
    expect((await postLines(to, batch('a'))).body).toMatchObject({ accepted: 10, duplicates: 0 })
    expect((await postLines(to, batch('a'))).body).toMatchObject({ accepted: 0, duplicates: 10 })
    expect((await postLines(to, batch('b'))).body).toMatchObject({ accepted: 10, duplicates: 0 })
    expect((await postLines(to, batch(1_760_000_000_000))).body).toMatchObject({ accepted: 10, duplicates: 0 })
    await training.checkpoint()
    // In any order, and after the progress was written and read again.
    expect((await postLines(to, batch('a'))).body).toMatchObject({ accepted: 0, duplicates: 10 })
    expect((await postLines(to, batch(undefined))).body).toMatchObject({ accepted: 10, duplicates: 0 })
    expect((await postLines(to, batch(undefined))).body).toMatchObject({ accepted: 0, duplicates: 10 })
    expect(steps.length).toBe(40)
    const refused = await postLines(to, batch('x'.repeat(101)))
    expect(refused.body).toMatchObject({ accepted: 0, rejected_count: 10 })
    expect((refused.body.rejected as { reason: string }[])[0]?.reason).toBe('session: expected up to 100 characters or a number')
  })

  it('is told apart after a restart of the agent, too', async () => {
    const first = await start()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo', pid: 1 })
    await postLines(`${first.url}/api/v1/runs/r1/steps`, lines(1, 10, { pid: 1, session: 'a' }))
    await first.close()
    const second = await start(first.dir)
    const to = `${second.url}/api/v1/runs/r1/steps`
    expect((await postLines(to, lines(1, 10, { pid: 1, session: 'a' }))).body).toMatchObject({ accepted: 0, duplicates: 10 })
    expect((await postLines(to, lines(1, 10, { pid: 1, session: 'b' }))).body).toMatchObject({ accepted: 10, duplicates: 0 })
  })
})

describe('runs', () => {
  it('are made once and merged when other ranks post them', async () => {
    const { url, runs } = await start()
    const posts = await Promise.all(
      [0, 1, 2, 3].map((rank) => post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo', gpus: [rank], world_size: 4, pid: 100 })),
    )
    expect(posts.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(posts.filter(({ body }) => body.created as boolean).length).toBe(1)
    expect(runs.at(-1)).toMatchObject({ id: 'r1', name: 'demo', worldSize: 4, outcome: null })
    expect([...(runs.at(-1)?.gpus ?? [])].sort()).toEqual(['0', '1', '2', '3'])
    const made = await post(`${url}/api/v1/runs`, { name: 'no id' })
    expect(made.body).toMatchObject({ name: 'no id', created: true })
    expect(made.body.id).toMatch(/^[0-9a-f]{16}$/)
  })

  it('keep their hyperparameters, without secrets, and how they load their data', async () => {
    const first = await start()
    const loader = { workers: 4, pinned_memory: true, cpus: 16 }
    await post(`${first.url}/api/v1/runs`, {
      id: 'r1',
      name: 'demo',
      hyperparameters: { lr: 0.1, model: { layers: 2 } },
      data_loader: loader,
    })
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo', hyperparameters: { lr: 0.2, api_key: 'abc' } })
    const kept = { hyperparameters: { lr: 0.2, 'model.layers': 2, api_key: '***' }, loader: { workers: 4, isPinned: true, cpus: 16 } }
    expect(await (await fetch(`${first.url}/api/v1/runs/r1`)).json()).toMatchObject(kept)
    expect(first.runs.at(-1)).toMatchObject({ loader: kept.loader })
    await first.close()
    const second = await start(first.dir)
    expect(await (await fetch(`${second.url}/api/v1/runs/r1`)).json()).toMatchObject(kept)
    const list = (await (await fetch(`${second.url}/api/v1/runs`)).json()) as { runs: Record<string, unknown>[] }
    expect(list.runs[0]).not.toHaveProperty('hyperparameters')
    expect((await post(`${second.url}/api/v1/runs`, { name: 'odd', hyperparameters: [1] })).status).toBe(400)
  })

  it('keep the most specific outcome, and the report of an out-of-memory', async () => {
    const { url, dir } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    await post(`${url}/api/v1/runs/r1/end`, { outcome: 'success', rank: 3 })
    expect((await (await fetch(`${url}/api/v1/runs/r1`)).json()) as object).toMatchObject({ outcome: null, endedAt: null })
    await post(`${url}/api/v1/runs/r1/end`, { outcome: 'oom', message: 'CUDA out of memory', rank: 1 })
    await post(`${url}/api/v1/runs/r1/end`, { outcome: 'failed' })
    const answer = await fetch(`${url}/api/v1/runs/r1/report`, { method: 'POST', body: '{"ledger": {"torch": NaN}, "message": "m"}' })
    expect(answer.status).toBe(200)
    const run = (await (await fetch(`${url}/api/v1/runs/r1`)).json()) as Record<string, unknown>
    expect(run).toMatchObject({ outcome: 'oom', message: 'CUDA out of memory', report: { ledger: { torch: 'NaN' } }, logDir: dir })
    const list = (await (await fetch(`${url}/api/v1/runs`)).json()) as { runs: Record<string, unknown>[] }
    expect(list.runs[0]).toMatchObject({ id: 'r1', hasReport: true })
  })

  it('are described in /openapi.json', async () => {
    const { url } = await start()
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, Record<string, unknown>> }
    expect(Object.keys(paths['/api/v1/runs/{id}/steps'] ?? {})).toEqual(['post', 'get'])
    expect(Object.keys(paths).filter((path) => path.startsWith('/api/v1/runs')).length).toBe(13)
  })

  it('are refused with what is wrong, and a forgotten one is unknown', async () => {
    const { url } = await start(undefined, { settings: { ...TRAINING_DEFAULTS, 'training.max_runs': 2 } })
    for (const [body, status] of [
      [{ name: '' }, 400],
      [{ name: 'x'.repeat(201) }, 400],
      [{ id: '../../etc/passwd', name: 'x' }, 400],
      [{ name: 'x', gpus: Array(1025).fill(0) }, 400],
      [{ name: 'x', command: 'y'.repeat(70_000) }, 413],
    ] as const)
      expect((await post(`${url}/api/v1/runs`, body)).status).toBe(status)
    for (const id of ['a', 'b', 'c']) await post(`${url}/api/v1/runs`, { id, name: id })
    const gone = await postLines(`${url}/api/v1/runs/a/steps`, line(1))
    expect([gone.status, (gone.body.error as { code: string }).code]).toEqual([404, 'unknown_run'])
    expect((await postLines(`${url}/api/v1/runs/c/steps`, line(1))).status).toBe(200)
    expect((await post(`${url}/api/v1/runs/c/end`, { outcome: 'exploded' })).status).toBe(400)
  })
})

describe('steps', () => {
  it('reach the hub and the log once, however often they are sent', async () => {
    const { url, dir, steps, store } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    expect((await postLines(to, lines(1, 10))).body).toMatchObject({ accepted: 10, duplicates: 0, last_seq: { 0: 10 }, rejected: [] })
    expect((await postLines(to, lines(6, 20))).body).toMatchObject({ accepted: 10, duplicates: 5, last_seq: { 0: 20 } })
    // A spool that is delivered after younger steps fills its gap.
    expect((await postLines(to, lines(31, 40))).body).toMatchObject({ accepted: 10 })
    expect((await postLines(to, gzipSync(lines(15, 35)), { 'content-encoding': 'gzip' })).body).toMatchObject({
      accepted: 10,
      duplicates: 11,
    })
    expect((await postLines(to, lines(1, 5, { rank: 1 }))).body).toMatchObject({ accepted: 5, last_seq: { 0: 40, 1: 5 } })
    expect(steps.length).toBe(45)
    await store.flush()
    const log = logged(dir)
    expect(log.length).toBe(45)
    expect(Object.keys(log[0] ?? {}).slice(0, 9)).toEqual([
      'timestamp',
      'step',
      'epoch',
      'loss',
      'learning_rate',
      'gradient_norm',
      'throughput_samples_per_sec',
      'memory_allocated_mb',
      'memory_reserved_mb',
    ])
    const columns = (await (await fetch(`${to}?from=39&fields=loss,epoch`)).json()) as { data: unknown[][] }
    expect(columns.data).toEqual([
      [39, 40],
      [T + 3900, T + 4000],
      [1 / 39, 1 / 40],
      [null, null],
    ])
  })

  it('of a process that was started again are not taken for those of the first', async () => {
    const { url } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    await postLines(to, lines(1, 5, { pid: 10 }))
    expect((await postLines(to, lines(1, 3, { pid: 11 }))).body).toMatchObject({ accepted: 3, last_seq: { 0: 3 } })
    expect((await postLines(to, lines(1, 5, { pid: 10 }))).body).toMatchObject({ accepted: 0, duplicates: 5 })
  })

  it('carry NaN and infinities all the way', async () => {
    const { url, dir, steps, store } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const body = [
      `{"seq":1,"rank":0,"step":1,"t":${T},"loss":NaN,"grad_norm":Infinity,"lr":-Infinity,"custom":{"a":NaN}}`,
      `{"seq":2,"rank":0,"step":2,"t":${T + 1},"loss":"NaN","grad_norm":"Infinity","lr":"-Infinity"}`,
    ].join('\n')
    expect((await postLines(`${url}/api/v1/runs/r1/steps`, body)).body).toMatchObject({ accepted: 2 })
    for (const step of steps) expect([step.loss, step.gradientNorm, step.learningRate]).toEqual([Number.NaN, Infinity, -Infinity])
    await store.flush()
    expect(logged(dir).map(({ loss, gradient_norm }) => [loss, gradient_norm])).toEqual(Array(2).fill(['NaN', 'Infinity']))
    const run = (await (await fetch(`${url}/api/v1/runs/r1`)).json()) as { training: Record<string, unknown> }
    expect(run.training).toMatchObject({ loss: 'NaN', nonFiniteSteps: 2, steps: 2, custom: { a: 'NaN' } })
  })

  it('that are NaN to the last are no success, also where the trainer writes 0 for the loss', async () => {
    const { url } = await start()
    const outcomes: unknown[] = []
    for (const [id, last] of [
      ['a', { loss: 'NaN' }],
      ['b', { loss: 0, grad_norm: 'NaN' }],
      ['c', { loss: 0.5, grad_norm: 'NaN' }],
      ['d', { loss: 0 }],
    ] as const) {
      await post(`${url}/api/v1/runs`, { id, name: id })
      await postLines(`${url}/api/v1/runs/${id}/steps`, [line(1), line(2, last)].join('\n'))
      await post(`${url}/api/v1/runs/${id}/end`, { outcome: 'success', rank: 1 })
      await post(`${url}/api/v1/runs/${id}/end`, { outcome: 'success', rank: 0 })
      outcomes.push(((await (await fetch(`${url}/api/v1/runs/${id}`)).json()) as { outcome: unknown }).outcome)
    }
    expect(outcomes).toEqual(['nan', 'nan', 'success', 'success'])
  })

  it('that cannot be used are named, and the others are taken', async () => {
    const { url } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    const body = [line(1), 'rubbish', '', '[1]', '{"seq":0,"step":1}', '{"seq":2,"step":2,"loss":"high"}', line(3)].join('\n')
    const { body: answer } = await postLines(to, body)
    expect(answer).toMatchObject({ accepted: 2, rejected_count: 4 })
    expect(answer.rejected).toEqual([
      { line: 2, reason: 'not JSON' },
      { line: 4, reason: 'not an object' },
      { line: 5, reason: expect.stringContaining('seq') },
      { line: 6, reason: 'loss: expected a number, got "high"' },
    ])
    const many = Array.from({ length: 30 }, () => 'x').join('\n')
    expect(((await postLines(to, many)).body.rejected as unknown[]).length).toBe(10)
  })

  it('keep within bounds: body, unpacked body, encoding, type, custom metrics', async () => {
    const { url, steps } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    const large = Buffer.alloc(5 * 1024 * 1024, 32)
    expect((await postLines(to, large)).status).toBe(413)
    expect((await postLines(to, gzipSync(large), { 'content-encoding': 'gzip' })).status).toBe(413)
    expect((await postLines(to, 'no gzip', { 'content-encoding': 'gzip' })).status).toBe(400)
    expect((await postLines(to, line(1), { 'content-encoding': 'br' })).status).toBe(415)
    expect((await postLines(to, line(1), { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await fetch(`${url}/api/v1/runs/r1/report`, { method: 'POST', body: `{"a":"${'x'.repeat(300_000)}"}` })).status).toBe(413)
    const custom = Object.fromEntries(Array.from({ length: 70 }, (_, index) => [`m${index}`, index]))
    const { body } = await postLines(to, [line(1, { custom }), line(2, { custom: { m1: 1, extra: 2 } })].join('\n'))
    expect(body).toMatchObject({ accepted: 2 })
    expect(body.ignored_metrics).toContain('m64')
    expect(Object.keys(steps[0]?.custom ?? {}).length).toBe(64)
    expect(steps[1]?.custom).toEqual({ m1: 1 })
  })

  it('are refused, not lost, when they cannot be kept', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gpuwarden-training-'))
    const { url, steps } = await start(dir)
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const { renameSync, rmSync } = await import('node:fs')
    renameSync(join(dir, 'runs'), join(dir, 'aside'))
    writeFileSync(join(dir, 'runs'), 'in the way')
    const refused = await postLines(`${url}/api/v1/runs/r1/steps`, lines(1, 3))
    expect([refused.status, (refused.body.error as { code: string }).code]).toEqual([503, 'unavailable'])
    expect(steps.length).toBe(0)
    rmSync(join(dir, 'runs'))
    renameSync(join(dir, 'aside'), join(dir, 'runs'))
    expect((await postLines(`${url}/api/v1/runs/r1/steps`, lines(1, 3))).body).toMatchObject({ accepted: 3, duplicates: 0 })
  })
})

describe('after the agent died', () => {
  /** The journal of a dead process: the tests' own process lives on, so the file gets the name of one that is gone. */
  async function orphan(dir: string): Promise<void> {
    const { renameSync } = await import('node:fs')
    for (const name of readdirSync(join(dir, 'runs')))
      if (name.startsWith('journal-'))
        renameSync(join(dir, 'runs', name), join(dir, 'runs', name.replace(/^journal-\d+-\d+/, 'journal-1-1')))
  }

  it('no acknowledged step is lost or doubled, whether it had reached the log or not', async () => {
    const first = await start()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const steps = (world: World) => `${world.url}/api/v1/runs/r1/steps`
    await postLines(steps(first), lines(1, 50))
    await first.store.flush()
    expect(logged(first.dir).length).toBe(50)
    await postLines(steps(first), lines(51, 80))
    await first.crash()
    // Only the store's own queue died with it.
    expect(logged(first.dir).length).toBe(50)
    await orphan(first.dir)
    const second = await start(first.dir)
    // The acknowledgement of 71 to 80 was lost on the way, so they are sent again.
    expect((await postLines(steps(second), lines(71, 90))).body).toMatchObject({ accepted: 10, duplicates: 10, last_seq: { 0: 90 } })
    expect(second.training.health()).toMatchObject({ recoveredSteps: 30 })
    const run = (await (await fetch(`${second.url}/api/v1/runs/r1`)).json()) as { name: string; training: { steps: number } }
    expect([run.name, run.training.steps]).toEqual(['demo', 90])
    await second.close()
    const found = logged(first.dir).map(({ step }) => Number(step))
    expect(found.sort((a, b) => a - b)).toEqual(Array.from({ length: 90 }, (_, index) => index + 1))
    expect(readdirSync(join(first.dir, 'runs')).filter((name) => name.startsWith('journal-'))).toEqual([])
    const third = await start(first.dir)
    expect((await postLines(steps(third), lines(1, 90))).body).toMatchObject({ accepted: 0, duplicates: 90 })
  })

  it('a batch that was torn off while it was written counts as never received', async () => {
    const first = await start()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    await postLines(`${first.url}/api/v1/runs/r1/steps`, lines(1, 5))
    await first.crash()
    const name = readdirSync(join(first.dir, 'runs')).find((one) => one.startsWith('journal-')) ?? ''
    const bytes = readFileSync(join(first.dir, 'runs', name))
    writeFileSync(join(first.dir, 'runs', name), Buffer.concat([bytes, Buffer.from('{"run":"r1","at":1,"bytes":100}\n{"seq":6')]))
    await orphan(first.dir)
    const second = await start(first.dir)
    expect((await postLines(`${second.url}/api/v1/runs/r1/steps`, lines(1, 6))).body).toMatchObject({ accepted: 1, duplicates: 5 })
  })

  it('a checkpoint shortens the journal', async () => {
    const { url, dir } = await start(undefined, { settings: { ...TRAINING_DEFAULTS, 'training.checkpoint_seconds': 0.1 } })
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    await postLines(`${url}/api/v1/runs/r1/steps`, lines(1, 5))
    const until = Date.now() + 20_000
    const isDone = () =>
      existsSync(join(dir, 'runs', 'r1.progress.json')) && !readdirSync(join(dir, 'runs')).some((name) => name.startsWith('journal-'))
    while (!isDone() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(isDone()).toBe(true)
    expect(logged(dir).length).toBe(5)
  })
})

describe('the real agent', () => {
  const agents: RunningAgent[] = []
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.stop('SIGKILL')
  })

  it('killed and started again in mid-run loses no step and doubles none', async () => {
    const args = ['--source', 'demo', '--interval', '1']
    const start = async (logDir?: string) => {
      const agent = await RunningAgent.start(args, {}, logDir)
      agents.push(agent)
      return agent
    }
    const first = await start()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo', world_size: 8 })
    const send = (agent: RunningAgent, from: number, to: number) =>
      Promise.all(
        [0, 1, 2, 3, 4, 5, 6, 7].map((rank) => postLines(`${agent.url}/api/v1/runs/r1/steps`, lines(from, to, { rank, pid: 50 + rank }))),
      )
    for (let from = 1; from <= 901; from += 100) await send(first, from, from + 99)
    await first.stop('SIGKILL')
    const second = await start(first.logDir)
    const answers = await send(second, 951, 1100)
    for (const { body } of answers) expect(body).toMatchObject({ accepted: 100, duplicates: 50 })
    const metrics = await second.text('/metrics')
    expect(metrics).toMatch(/^training_steps_total\{[^}]*run="r1",rank="7"[^}]*\} 1100$/m)
    await second.stop('SIGKILL')
    const third = await start(first.logDir)
    for (const { body } of await send(third, 1, 1100)) expect(body).toMatchObject({ accepted: 0, duplicates: 1100 })
    await third.stop()
    const found = third.lines('training_metrics').filter(({ run }) => run === 'r1')
    expect(found.length).toBe(8 * 1100)
    expect(new Set(found.map(({ rank, step }) => `${rank} ${step}`)).size).toBe(8 * 1100)
  })
})

describe('the real agent, started after a run was killed without a word', () => {
  it('closes the run', async () => {
    const first = await RunningAgent.start(['--source', 'demo', '--interval', '10'])
    const victim = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo', host: hostname(), pid: victim.pid })
    await first.stop()
    await new Promise((resolve) => {
      victim.once('exit', resolve)
      victim.kill('SIGKILL')
    })
    // Two minutes pass.
    const file = join(first.logDir, 'runs', 'r1.run.json')
    const saved = JSON.parse(readFileSync(file, 'utf8')) as { updatedAt: number; startedAt: number }
    writeFileSync(file, JSON.stringify({ ...saved, updatedAt: saved.updatedAt - 120_000, startedAt: saved.startedAt - 120_000 }))
    const second = await RunningAgent.start(['--source', 'demo', '--interval', '10'], {}, first.logDir)
    try {
      const run = () => second.get<Record<string, unknown>>('/api/v1/runs/r1')
      await expect.poll(run, { timeout: 20_000 }).toMatchObject({ outcome: 'killed', endIsPresumed: true })
      expect((await run()).endedAt).toBe(saved.updatedAt - 120_000)
    } finally {
      await second.stop('SIGKILL')
    }
  })
})

describe('the parts', () => {
  it('ranges remember exactly what was added', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 200 }), (seqs) => {
        const ranges = new SeqRanges()
        const seen = new Set<number>()
        for (const seq of seqs) {
          expect(ranges.add(seq)).toBe(!seen.has(seq))
          seen.add(seq)
        }
        const listed = ranges.toJSON().flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
        expect(listed).toEqual([...seen].sort((a, b) => a - b))
        expect(ranges.last).toBe(Math.max(0, ...seqs))
      }),
    )
  })

  it('a line is a step or a reason, never an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.jsonValue().map((value) => JSON.stringify({ seq: 1, step: 1, loss: value, alloc: value, custom: value })),
        ),
        (text) => {
          const received = parseReceivedStep(text, 'r', T)
          if (typeof received === 'string') expect(received.length).toBeGreaterThan(0)
          else expect(received.seq).toBeGreaterThan(0)
        },
      ),
    )
  })

  it('a batch in any order and with any repetition gives every step once', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 100 }), (seqs) => {
        const progress = new Progress()
        const { steps, outcome } = applyBatch(progress, 'r', Buffer.from(seqs.map((seq) => line(seq)).join('\n')), T)
        expect(steps.map(({ step }) => step).sort((a, b) => a - b)).toEqual([...new Set(seqs)].sort((a, b) => a - b))
        expect(outcome.accepted + outcome.duplicates).toBe(seqs.length)
      }),
    )
  })

  it('progress comes back from its file as it was', () => {
    const progress = new Progress()
    const body = Array.from({ length: 3000 }, (_, index) =>
      line(index + 1, { loss: index === 5 ? 'NaN' : 1 / (index + 1), custom: { a: index } }),
    )
    applyBatch(progress, 'r', Buffer.from(body.join('\n')), T)
    const again = new Progress()
    const text = JSON.stringify(progress.snapshot(), (_, item: unknown) =>
      typeof item === 'number' && !Number.isFinite(item) ? String(item) : item,
    )
    again.restore(JSON.parse(text))
    expect(again.figures()).toEqual(progress.figures())
    const names = ['loss', 'stepSeconds', 'custom:a']
    const curve = again.curves.of(0)
    expect(curve?.columns(names)).toEqual(progress.curves.of(0)?.columns(names))
    const [steps, , loss] = curve?.columns(names) ?? []
    expect(steps?.length).toBeLessThanOrEqual(1024)
    expect(loss?.[steps?.indexOf(6) ?? -1]).toBeNaN()
  })
})
