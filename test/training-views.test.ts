/** What screens ask of runs: the list, the course of each rank, the ranks side by side, the report. */
import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { BIN, temporaryFolder } from './program.ts'
import { closeAll, line, lines, post, postLines, start, T } from './training-world.ts'

afterEach(closeAll)

type Json = Record<string, unknown>

async function get<Body = Json>(url: string): Promise<{ status: number; body: Body; headers: Headers }> {
  const answer = await fetch(url)
  return { status: answer.status, body: (await answer.json()) as Body, headers: answer.headers }
}

const errorOf = (body: Json) => body.error as { code: string; message: string; hint: string }

describe('the course of a run', () => {
  it('is given for each rank, with every figure, from a step to a step', async () => {
    const { url } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    for (const rank of [1, 0])
      await postLines(to, lines(1, 5, { rank, alloc: { active: 7 + rank, ooms: 1 }, phases: { data: 0.5 }, custom: { 'eval/acc': rank } }))
    const fields = ['memoryActiveBytes', 'oomCount', 'allocRetries', 'phase:data', 'custom:eval/acc']
    const asked = await get(`${to}?rank=1&from=2&to=3&fields=${fields.join()}`)
    expect(asked.body).toMatchObject({ id: 'r1', rank: 1, ranks: [0, 1], fields, stride: 1 })
    expect(asked.body.data).toEqual([
      [2, 3],
      [T + 200, T + 300],
      [8, 8],
      [1, 1],
      [null, null],
      [0.5, 0.5],
      [1, 1],
    ])
    expect((await get(`${to}?fields=custom:eval/acc`)).body).toMatchObject({ rank: 0, data: [[1, 2, 3, 4, 5], {}, [0, 0, 0, 0, 0]] })
  })

  it('says what it does not have, and what it has', async () => {
    const { url } = await start()
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const to = `${url}/api/v1/runs/r1/steps`
    expect((await get(to)).body).toMatchObject({ rank: null, ranks: [], data: [[], [], []] })
    await postLines(to, lines(1, 5, { rank: 3, custom: { accuracy: 1 } }))
    const name = await get(`${to}?fields=loss,custom:acuracy`)
    expect([name.status, errorOf(name.body).code]).toEqual([400, 'invalid_field'])
    expect(errorOf(name.body).message).toContain('custom:acuracy')
    expect(errorOf(name.body).hint).toContain('custom:accuracy')
    const rank = await get(`${to}?rank=0`)
    expect([rank.status, errorOf(rank.body).code, errorOf(rank.body).hint]).toEqual([
      400,
      'invalid_parameter',
      'These ranks have curves: 3.',
    ])
    expect(errorOf((await get(`${to}?from=5&to=4`)).body).code).toBe('invalid_range')
    for (const bad of ['rank=-1', 'rank=x', 'to=-1', 'fields=', 'since=1']) expect((await get(`${to}?${bad}`)).status).toBe(400)
  })

  it('and the ranks side by side are there again after a restart', async () => {
    const first = await start()
    await post(`${first.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    for (const rank of [0, 1])
      await postLines(`${first.url}/api/v1/runs/r1/steps`, lines(1, 10 + rank, { rank, step_seconds: 0.1 * (rank + 1), phases: { a: 1 } }))
    const paths = ['steps?rank=1&fields=loss,phase:a', 'ranks']
    const ask = (url: string) => Promise.all(paths.map(async (path) => ({ ...(await get(`${url}/api/v1/runs/r1/${path}`)).body, at: 0 })))
    const before = await ask(first.url)
    expect(before[1]).toMatchObject({
      id: 'r1',
      ranks: [
        { rank: 0, behindSteps: 1, relativeSpeed: 2 },
        { rank: 1, lastStep: 11, behindSteps: 0, relativeSpeed: 0.5, meanStepSeconds: expect.closeTo(0.2) },
      ],
    })
    await first.close()
    const second = await start(first.dir)
    expect(await ask(second.url)).toEqual(before)
  })
})

describe('the list of runs', () => {
  it('has the figures of each, also of those that only lie on the disk, and says how long each still takes', async () => {
    const first = await start()
    const announce = (extra: object) =>
      post(`${first.url}/api/v1/runs`, { name: 'demo', user: 'ada', framework: 'lightning', gpus: [1], ...extra })
    await announce({ id: 'a', total_steps: 1000 })
    await announce({ id: 'b' })
    for (const id of ['a', 'b'])
      await postLines(`${first.url}/api/v1/runs/${id}/steps`, lines(1, 100, { step_seconds: 0.5, throughput: 64, loss: 'NaN' }))
    await postLines(`${first.url}/api/v1/runs/a/steps`, line(1, { rank: 1 }))
    const expected = {
      id: 'a',
      user: 'ada',
      framework: 'lightning',
      gpus: ['1'],
      totalSteps: 1000,
      outcome: null,
      ranks: 2,
      training: { steps: 101, lastStep: 100, lastStepAt: T + 10_000, loss: 'NaN', throughputPerSecond: 64, etaSeconds: 450 },
    }
    const list = async (url: string) => (await get<{ runs: Json[] }>(`${url}/api/v1/runs`)).body.runs
    expect((await list(first.url)).find(({ id }) => id === 'a')).toMatchObject(expected)
    expect((await list(first.url)).find(({ id }) => id === 'b')).toMatchObject({ totalSteps: null, training: { etaSeconds: null } })
    await first.close()
    const second = await start(first.dir)
    expect((await list(second.url)).find(({ id }) => id === 'a')).toMatchObject(expected)
    // A plan may change.
    await post(`${second.url}/api/v1/runs`, { id: 'a', name: 'demo', total_steps: 200 })
    expect((await get(`${second.url}/api/v1/runs/a`)).body).toMatchObject({ totalSteps: 200, training: { etaSeconds: 50 } })
    expect(second.runs.at(-1)).toMatchObject({ id: 'a', totalSteps: 200 })
    await post(`${second.url}/api/v1/runs/a/end`, { outcome: 'success' })
    expect((await get(`${second.url}/api/v1/runs/a`)).body).toMatchObject({ training: { etaSeconds: null } })
    expect((await post(`${second.url}/api/v1/runs`, { name: 'x', total_steps: 0 })).status).toBe(400)
  })

  it('stays whole with more runs than are held in memory', async () => {
    const { url, training } = await start()
    const ids = Array.from({ length: 80 }, (_, index) => `run-${index}`)
    for (const id of ids) {
      await post(`${url}/api/v1/runs`, { id, name: id })
      await postLines(`${url}/api/v1/runs/${id}/steps`, lines(1, 3))
      await post(`${url}/api/v1/runs/${id}/end`, { outcome: 'success' })
    }
    await training.checkpoint()
    // Looking at each loads it and puts others away; steps go on meanwhile.
    await Promise.all(
      ids.flatMap(
        (id) => [get(`${url}/api/v1/runs/${id}`), postLines(`${url}/api/v1/runs/${id}/steps`, lines(3, 6))] as Promise<unknown>[],
      ),
    )
    await training.checkpoint()
    for (const id of ids) expect((await get(`${url}/api/v1/runs/${id}`)).body).toMatchObject({ training: { steps: 6, lastStep: 6 } })
    const { runs } = (await get<{ runs: { training: { steps: number } }[] }>(`${url}/api/v1/runs`)).body
    expect(runs.map(({ training: { steps } }) => steps)).toEqual(Array(80).fill(6))
  })
})

describe('the report of a run', () => {
  const report = { program: BIN, configFile: null }

  it('is made as the command makes it, to keep or to look at', async () => {
    const { url, dir } = await start(undefined, { report })
    await post(`${url}/api/v1/runs`, { id: 'r1', name: '<script>alert(1)</script>', started_at: T })
    await postLines(`${url}/api/v1/runs/r1/steps`, lines(1, 50))
    await post(`${url}/api/v1/runs/r1/end`, { outcome: 'success', ended_at: T + 6000 })
    const answer = await fetch(`${url}/api/v1/runs/r1/report.html`)
    expect([answer.status, answer.headers.get('content-disposition')]).toEqual([200, 'attachment; filename="gpuwarden-r1.html"'])
    const html = await answer.text()
    expect(html).toMatch(/^<!doctype html>/)
    expect(html).toContain('last loss')
    const view = await fetch(`${url}/api/v1/runs/r1/report.html?view=1`)
    expect(view.headers.get('content-disposition')).toBe(null)
    const policy = view.headers.get('content-security-policy') ?? ''
    expect(policy).toContain('sandbox allow-scripts')
    expect(policy).not.toMatch(/script-src[^;]*unsafe-inline/)
    const json = await get(`${url}/api/v1/runs/r1/report.json`)
    expect(json.headers.get('content-disposition')).toContain('gpuwarden-r1.json')
    const printed = execFileSync(process.execPath, [BIN, 'report', 'r1', '--log-dir', dir, '--json'], { encoding: 'utf8' })
    const { to, ...made } = json.body
    expect(JSON.parse(printed)).toMatchObject(made)
  })

  it('is refused where there is nothing to make it of', async () => {
    const { url } = await start(undefined, { report })
    expect(errorOf((await get(`${url}/api/v1/runs/nobody/report.html`)).body).code).toBe('unknown_run')
    await post(`${url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    const empty = await get(`${url}/api/v1/runs/r1/report.html`)
    expect([empty.status, errorOf(empty.body).code]).toEqual([409, 'no_log'])
    const off = await start(undefined, { report, dir: null })
    await post(`${off.url}/api/v1/runs`, { id: 'r1', name: 'demo' })
    await postLines(`${off.url}/api/v1/runs/r1/steps`, lines(1, 5))
    const unlogged = await get(`${off.url}/api/v1/runs/r1/report.json`)
    expect([unlogged.status, errorOf(unlogged.body).code, errorOf(unlogged.body).hint]).toEqual([
      409,
      'no_log',
      expect.stringContaining('log.enabled'),
    ])
  })

  it('is made one at a time, within a time limit, and failures are reported', async () => {
    const folder = temporaryFolder()
    const program = join(folder, 'program.mjs')
    // Fails when another one runs at the same time.
    writeFileSync(
      program,
      `import { rmSync, writeFileSync } from 'node:fs'
       const lock = ${JSON.stringify(join(folder, 'lock'))}
       writeFileSync(lock, '', { flag: 'wx' })
       setTimeout(() => { rmSync(lock); console.log('{}') }, process.argv.includes('slow') ? 60_000 : 300)`,
    )
    chmodSync(program, 0o600)
    const { url } = await start(undefined, { report: { program, configFile: null, limitMs: 5000 } })
    for (const id of ['r1', 'slow']) await post(`${url}/api/v1/runs`, { id, name: 'demo' })
    const all = await Promise.all(Array.from({ length: 8 }, () => get(`${url}/api/v1/runs/r1/report.json`)))
    const statuses = all.map(({ status }) => status).sort()
    // Five may be made or wait; a slow machine may have finished one before the last asks.
    expect(statuses.slice(0, 5)).toEqual([200, 200, 200, 200, 200])
    expect(statuses.at(-1)).toBe(429)
    expect(all.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('5')
    const late = await get(`${url}/api/v1/runs/slow/report.json`)
    expect([late.status, errorOf(late.body).message]).toEqual([503, expect.stringContaining('longer than 5 s')])
    const failed = await get(`${url}/api/v1/runs/r1/report.json`)
    expect([failed.status, errorOf(failed.body).message]).toEqual([503, expect.stringContaining('EEXIST')])
  })
})
