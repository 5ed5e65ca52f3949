/** Recordings of the lines that keep memory, over real sockets: who is asked, what is taken, what the hub hears. */
import { afterEach, describe, expect, it } from 'vitest'
import type { Finding } from '../src/core/model.ts'
import { TRAINING_DEFAULTS } from '../src/training/settings.ts'
import { closeAll, line, post, postLines, start } from './training-world.ts'

afterEach(closeAll)

const LINE = { file: 'train.py', line: 77, function: 'remember', bytes: 3e9, blocks: 18, bytes_per_step: 168_820_736, share: 0.98 }
const RESULT = { kind: 'gpu', trigger: 'leak', rank: 0, at: Date.now(), steps: 20, grown_bytes: 3.1e9, lines: [LINE] }

const leak = { detector: 'leak', state: 'active', severity: 'warning', provenance: 'live', evidence: { source: 'allocator' }, since: 1 }
const finding = (run: string): Finding => ({ ...leak, subject: { run, rank: 0 } }) as unknown as Finding

async function leaking(settings = TRAINING_DEFAULTS, run: object = { can_record: true }) {
  const world = await start(undefined, { settings })
  const path = `${world.url}/api/v1/runs`
  await post(path, { id: 'r', name: 'leaky', ...run })
  const step = async (seq: number) => (await postLines(`${path}/r/steps`, line(seq, { step_seconds: 0.3 }))).body
  const recordings = async () => (await (await fetch(`${path}/r/recordings`)).json()) as { waiting: object[]; recordings: object[] }
  return { ...world, path, step, recordings }
}

describe('recordings', () => {
  it('are asked for in the answer to steps, until the result is there, and then named to everybody', async () => {
    const { training, step, path, runs, recordings } = await leaking()
    expect(await step(1)).not.toHaveProperty('record')
    training.recordings.noteFinding(finding('r'))
    const { record } = (await step(2)) as { record: { id: string } }
    expect(record).toMatchObject({ kind: 'gpu', steps: 27, trigger: 'leak' })
    expect(await step(3)).toHaveProperty('record', record)
    expect((await recordings()).waiting).toHaveLength(1)
    const taken = await post(`${path}/r/recordings/${record.id}`, RESULT)
    expect(taken, 'names the run, as every acknowledgement does').toEqual({ status: 200, body: { id: 'r', recording: record.id } })
    expect(await step(4)).not.toHaveProperty('record')
    const named = { rank: 0, file: 'train.py', line: 77, function: 'remember', bytesPerStep: 168_820_736, share: 0.98 }
    expect(runs.at(-1)?.leakLines).toMatchObject([named])
    expect(await (await fetch(`${path}/r`)).json()).toMatchObject({ leakLines: [named], recordings: [{ id: record.id, reason: null }] })
    expect(await (await fetch(path)).json()).toMatchObject({ runs: [{ leakLines: [named] }] })
    expect(await recordings()).toMatchObject({ waiting: [], recordings: [{ id: record.id, steps: 20 }] })
  })

  it('are not asked for where the setting, the SDK or the run is against it', async () => {
    const off = await leaking({ ...TRAINING_DEFAULTS, 'training.record_leaks': false })
    off.training.recordings.noteFinding(finding('r'))
    expect(await off.step(1)).not.toHaveProperty('record')
    expect((await post(`${off.path}/r/recordings`, {})).status, 'by hand it still works').toBe(200)
    for (const run of [{}, { can_record: false }, { can_record: null }]) {
      const { training, step, path } = await leaking(TRAINING_DEFAULTS, run)
      training.recordings.noteFinding(finding('r'))
      expect(await step(1)).not.toHaveProperty('record')
      expect((await post(`${path}/r/recordings`, {})).body).toMatchObject({ error: { code: 'conflict' } })
    }
    const { training, path, recordings } = await leaking()
    training.recordings.noteFinding(finding('r'))
    await post(`${path}/r/end`, { outcome: 'success' })
    expect((await recordings()).waiting).toEqual([])
    training.recordings.noteFinding(finding('r'))
    training.recordings.noteFinding(finding('nobody'))
    expect((await recordings()).waiting).toEqual([])
    expect((await post(`${path}/r/recordings`, {})).body).toMatchObject({ error: { code: 'conflict', message: 'The run is over.' } })
  })

  it('are asked for by hand, one at a time', async () => {
    const { path, step } = await leaking()
    expect((await post(`${path}/r/recordings`, { steps: 5 })).status).toBe(400)
    expect((await post(`${path}/r/recordings`, { steps: 12, kind: 'disk' })).status).toBe(400)
    expect((await post(`${path}/nobody/recordings`, {})).status).toBe(404)
    const asked = await post(`${path}/r/recordings`, { steps: 12, kind: 'host' })
    expect(asked.body).toMatchObject({ kind: 'host', steps: 12, rank: null, sentAt: null })
    expect((await post(`${path}/r/recordings`, {})).body).toMatchObject({ error: { code: 'conflict' } })
    expect(await step(1)).toMatchObject({ record: { id: asked.body.id, kind: 'host', steps: 12, trigger: 'hand' } })
  })

  it('are bounded, checked and kept eight at most', async () => {
    const { path, runs, recordings } = await leaking()
    const send = async (id: string, body: object) => (await post(`${path}/r/recordings/${id}`, body)).status
    expect(await send('a', { ...RESULT, lines: Array(11).fill(LINE) })).toBe(400)
    expect(await send('a', { ...RESULT, lines: [{ ...LINE, bytes: -1 }] })).toBe(400)
    expect(await send('a', { ...RESULT, lines: [{ ...LINE, share: 2 }] })).toBe(400)
    expect(await send('a', { ...RESULT, kind: 'disk' })).toBe(400)
    expect(await send('a', { ...RESULT, note: 'x'.repeat(70_000) })).toBe(413)
    expect(await send('..%2F..%2Fetc', RESULT)).toBe(400)
    expect((await post(`${path}/nobody/recordings/a`, RESULT)).status).toBe(404)
    expect(runs.at(-1)?.leakLines).toEqual([])
    expect(await send('a', { ...RESULT, lines: [{ ...LINE, file: `\u001b[31m${'x'.repeat(900)}` }] })).toBe(200)
    expect(runs.at(-1)?.leakLines?.[0]?.file).toMatch(/^·\[31mx{495}$/)
    for (let index = 0; index < 12; index++) expect(await send(`b${index}`, { ...RESULT, rank: index, at: RESULT.at + index })).toBe(200)
    expect((await recordings()).recordings).toHaveLength(8)
    expect(await send('c', { ...RESULT, lines: [], reason: 'the program records its memory history itself' })).toBe(200)
    expect((await recordings()).recordings[0]).toMatchObject({
      id: 'c',
      reason: 'the program records its memory history itself',
      lines: [],
    })
  })
})
