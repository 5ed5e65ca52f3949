/** Where a run stands, from outside: the routes, `gpuwarden stacks` and `gpuwarden hang`. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { recorderEnvironment } from '../src/commands/run.ts'
import type { Finding } from '../src/core/model.ts'
import { FIXTURES, run, temporaryFolder } from './program.ts'
import { closeAll, line, post, postLines, start } from './training-world.ts'

afterEach(closeAll)

const DUMPS = join(FIXTURES, 'flight-recorder')
const FRAME = { file: '/app/train.py', line: 77, function: 'main' }
const BODY = {
  rank: 0,
  pid: 7,
  at: 1,
  moves: false,
  threads: [{ name: 'MainThread', is_main: true, state: 'S', syscall: 'clock_nanosleep', frames: [FRAME] }],
}

async function silent() {
  const world = await start()
  const path = `${world.url}/api/v1/runs`
  await post(path, { id: 'r', name: 'quiet', host: 'elsewhere' })
  await postLines(`${path}/r/steps`, line(1, { t: Date.now() - 60_000, step_seconds: 0.1 }))
  const sign = async () => (await postLines(`${path}/r/steps?rank=0`, '')).body as { accepted: number; stacks?: { id: string } }
  const read = async () => (await (await fetch(`${path}/r/stacks`)).json()) as Record<string, unknown>
  return { ...world, path, sign, read }
}

describe('stacks', () => {
  it('are asked for in the answer to a sign of life, judged with the stall, and kept without what it costs', async () => {
    const { training, path, sign, read, runs } = await silent()
    const { accepted, stacks } = await sign()
    expect({ accepted, id: stacks?.id }).toEqual({ accepted: 0, id: expect.stringMatching(/^[0-9a-f]{16}$/) })
    expect(await post(`${path}/r/stacks/${stacks?.id}`, BODY)).toEqual({ status: 200, body: { id: 'r', look: stacks?.id } })
    expect((await sign()).stacks).toBeUndefined()
    const stall = { detector: 'stall', state: 'active', provenance: 'live', subject: { run: 'r' }, since: Date.now() - 60_000 }
    training.noteFinding(stall as unknown as Finding)
    await expect.poll(() => runs.at(-1)?.hang?.sentence).toBe('main thread in train.py:77, sleeping')
    expect(await read()).toMatchObject({ isOver: true, verdict: { culprits: [0], isStuck: true }, ranks: [{ rank: 0, from: 'sdk' }] })
    expect(await (await fetch(`${path}/r`)).json()).toMatchObject({ hang: { place: 'train.py:77' }, hasStacks: true })
    expect(JSON.stringify(await (await fetch(path)).json())).not.toContain('MainThread')
    await post(`${path}/r/end`, { outcome: 'failed' })
    expect(await read(), 'kept with the run').toMatchObject({ look: null, isOver: true, ranks: [{ rank: 0 }] })
    expect((await post(`${path}/r/stacks`, {})).body).toMatchObject({ error: { code: 'conflict' } })
  })

  it('are refused when nobody asked, or when they are no stacks', async () => {
    const { path, sign } = await silent()
    expect((await post(`${path}/r/stacks/abc`, BODY)).body).toMatchObject({ error: { code: 'conflict' } })
    expect((await post(`${path}/r/stacks/../x`, BODY)).status).toBe(404)
    const id = (await sign()).stacks?.id
    expect((await post(`${path}/r/stacks/${id}`, { ...BODY, rank: -1 })).status).toBe(400)
    expect((await post(`${path}/r/stacks/${id}`, { ...BODY, threads: Array(65).fill(BODY.threads[0]) })).status).toBe(400)
    expect((await post(`${path}/nobody/stacks`, {})).body).toMatchObject({ error: { code: 'unknown_run' } })
  })

  it('are printed by gpuwarden stacks, which says why there are none', { timeout: 60_000 }, async () => {
    const { url, path, sign } = await silent()
    const port = new URL(url).port
    const printed = run(['stacks', 'quiet', '--port', port])
    for (let look = 0; look < 300; look++) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      const asked = (await sign()).stacks?.id
      // The first one is that of the silence, a later one that of the command.
      if (asked !== undefined) await post(`${path}/r/stacks/${asked}`, BODY)
      if ((await Promise.race([printed, null])) !== null) break
    }
    const { code, stdout } = await printed
    expect(stdout).toMatch(/^run quiet \(r\) stands still since \d\d:\d\d:\d\d \(1 min[ \w]*\): main thread in train\.py:77, sleeping\n/)
    expect(stdout).toContain('    /app/train.py:77 in main')
    expect(code).toBe(0)
    expect(await run(['stacks', 'nobody', '--port', port])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('there is no run "nobody"'),
    })
    expect(await run(['stacks', '--port', port])).toMatchObject({ code: 2 })
    await post(`${path}/r/end`, { outcome: 'success' })
    expect(await run(['stacks', 'quiet', '--port', port])).toMatchObject({ code: 3, stderr: expect.stringContaining('is over') })
  })
})

describe('gpuwarden hang', () => {
  it('names the rank that is missing in real dumps', async () => {
    const { code, stdout } = await run(['hang', DUMPS])
    expect(code).toBe(1)
    expect(stdout).toContain('1 process group does not agree. Look at rank 2 first.\n3 ranks read: 0 to 2\n')
    expect(stdout).toContain('  #5 all_reduce [[4]] Float: rank 2 has not called it\n')
    const { stdout: json } = await run(['hang', DUMPS, '--json'])
    expect(JSON.parse(json)).toMatchObject({
      culprits: [2],
      ranks: [0, 1, 2],
      faults: [],
      groups: [{ matching: 4, fault: { kind: 'missing', seq: 5 } }],
    })
  })

  it('leaves out what is no dump, and runs nothing in it', async () => {
    const folder = temporaryFolder()
    copyFileSync(join(DUMPS, 'gloo_rank_0'), join(folder, 'gloo_rank_0'))
    writeFileSync(join(folder, 'gloo_rank_1'), Buffer.from(`\x80\x02cos\nsystem\nX\x0a\x00\x00\x00touch evil\x85R.`, 'latin1'))
    const { code, stdout } = await run(['hang', folder])
    expect(stdout).toMatch(/note: .*gloo_rank_1 is left out: opcode GLOBAL at byte 2 imports something: it was not run\n/)
    expect(code).toBe(1)
    expect(await run(['hang', temporaryFolder()])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no dump of the flight recorder'),
    })
    expect(await run(['hang', '/nonexistent'])).toMatchObject({ code: 3 })
    expect(await run(['hang'])).toMatchObject({ code: 2 })
  })
})

it('gpuwarden run lets PyTorch record its collectives, unless the user decided', () => {
  expect(recorderEnvironment({})).toEqual({ TORCH_FR_BUFFER_SIZE: '2000' })
  expect(recorderEnvironment({ TORCH_FR_BUFFER_SIZE: '0' })).toEqual({})
  expect(recorderEnvironment({ TORCH_NCCL_TRACE_BUFFER_SIZE: '99' })).toEqual({})
})
