/** The history on disk from outside: `gpuwarden history`, the API, and what a kill at any moment leaves. Runs what was built. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HistoryAnswer } from '../src/core/kinds.ts'
import { GPU, gpuInfo, gpuSample, recordedLog, SETTINGS, temporaryDir, tickEvent } from '../src/store/sink.contract.ts'
import { createStore } from '../src/store/store.ts'
import { ask, DAY, FIRST_DAY, run as keepRecords, rootOf, seconds, table } from '../src/store/tiers/tiers.fixture.ts'
import { RunningAgent, run, until } from './program.ts'

async function writeLogs(dir: string, count: number, from = FIRST_DAY): Promise<void> {
  let now = from
  const store = createStore({
    dir,
    settings: { ...SETTINGS, 'log.rotate_hours': 1 / 6 },
    log: recordedLog(),
    now: () => now,
    runId: 'test',
  })
  store.accept({ type: 'devices', devices: [gpuInfo()] })
  for (let index = 0; index < count; index++) {
    now = from + index * 1000
    store.accept(tickEvent(now, [gpuSample(now, { powerWatts: index % 600, utilizationRatio: 0.5 })]))
    if (index % 300 === 299) await store.flush()
  }
  await store.close()
}

const span = ['--from', new Date(FIRST_DAY).toISOString(), '--to', new Date(FIRST_DAY + 3_600_000).toISOString()]

describe('gpuwarden history', () => {
  it('prints records of a folder as CSV, JSON, Parquet and a table', async () => {
    const dir = await temporaryDir()
    await writeLogs(dir, 30)
    await keepRecords(dir, seconds(FIRST_DAY, 60))
    const asked = ['history', '--log-dir', dir, ...span, '--gpu', '0', '--series', 'powerWatts']
    const csv = await run([...asked, '--csv'])
    expect(csv.stdout.split('\n').slice(0, 3)).toEqual([
      'time,power_draw_watts_min,power_draw_watts_mean,power_draw_watts_max',
      '2026-03-10T00:00:00.000Z,0,4.5,9',
      '2026-03-10T00:00:10.000Z,10,14.5,19',
    ])
    const json = JSON.parse((await run([...asked, '--json'])).stdout) as { records: Record<string, unknown>[] }
    expect(json.records).toHaveLength(6)
    expect(json.records[5]).toEqual({
      time: '2026-03-10T00:00:50.000Z',
      power_draw_watts_min: 50,
      power_draw_watts_mean: 54.5,
      power_draw_watts_max: 59,
    })
    const file = join(dir, 'out.parquet')
    expect((await run([...asked, '--parquet', file])).stderr).toContain('6 records')
    const bytes = await readFile(file)
    const rows = await parquetReadObjects({ file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer })
    expect(rows[1]).toEqual({
      time: new Date(FIRST_DAY + 10_000),
      power_draw_watts_min: 10,
      power_draw_watts_mean: 14.5,
      power_draw_watts_max: 19,
    })
    expect((await run(asked)).stdout).toMatch(/power_draw_watts\s+0\s+29\.5\s+59\s+6/)
  })

  it('reads the logs of an agent that kept no records', async () => {
    const dir = await temporaryDir()
    await writeLogs(dir, 900)
    const { stdout, code } = await run(['history', '--log-dir', dir, ...span, '--csv', '--series', 'power_draw_watts'])
    expect(code).toBe(0)
    expect(stdout.trim().split('\n')).toHaveLength(91)
    expect(await readdir(dir)).not.toContain('history')
  })

  it('says what is wrong', async () => {
    const dir = await temporaryDir()
    await keepRecords(dir, seconds(FIRST_DAY, 60))
    const cases: readonly [readonly string[], number, RegExp][] = [
      [['--from', '-1h', '--to', '-2h'], 2, /--from .* must be before --to/],
      [['--from', 'yesterday'], 2, /--from: "yesterday" is not a time/],
      [[...span, '--series', 'watts'], 2, /"watts" is not a reading/],
      [[...span, '--step', '0'], 2, /--step: expected seconds/],
      [[...span, '--gpu', '7'], 3, /no records of GPU 7[\s\S]*There are: GPU-/],
      [['--from', '2090-01-01', '--to', '2090-01-02'], 3, /no records of the GPU between 2090-01-01/],
    ]
    for (const [args, code, words] of cases) {
      const ended = await run(['history', '--log-dir', dir, ...args])
      expect(ended.stderr, args.join(' ')).toMatch(words)
      expect(ended.code, args.join(' ')).toBe(code)
    }
    const empty = await run(['history', '--log-dir', join(dir, 'nothing')])
    expect([empty.code, empty.stderr]).toEqual([3, expect.stringContaining('cannot read the recording')])
  })
})

describe('an agent', () => {
  it('keeps records, answers from them after kill -9, and takes in the logs of an earlier version', async () => {
    const dir = await temporaryDir()
    await writeLogs(dir, 60, Date.now() - 3 * DAY)
    const args = ['--source', 'demo', '--demo-gpus', '2', '--interval', '0.5']
    const first = await RunningAgent.start(args, {}, dir)
    onTestFinished(() => void first.stop('SIGKILL'))
    const startedAt = Date.now()
    await sleep(24_000)
    const killedAt = Date.now()
    await first.stop('SIGKILL')
    const journal = (await readdir(join(rootOf(dir), 'journal'))).filter((name) => /T\d\d\.jsonl$/.test(name))
    const text = (await Promise.all(journal.map((name) => readFile(join(rootOf(dir), 'journal', name), 'utf8')))).join('')
    const ends = text
      .split('\n')
      .flatMap((line) => (line.includes('SIM-0000') ? [Date.parse((JSON.parse(line) as { at: string }).at) + 10_000] : []))
    // Ten seconds, and what a busy machine needs to write them.
    expect(killedAt - Math.max(...ends)).toBeLessThan(13_000)
    expect([...new Set(ends)]).toHaveLength((Math.max(...ends) - Math.min(...ends)) / 10_000 + 1)
    expect(Math.min(...ends)).toBeLessThan(startedAt + 11_000)

    const second = await RunningAgent.start(args, {}, dir)
    onTestFinished(() => void second.stop('SIGKILL'))
    const answer = await second.get<HistoryAnswer>('/api/v1/history?gpu=0&field=powerWatts&from=-3h')
    expect(answer.stepMs).toBe(10_000)
    expect(answer.data[0]?.[0]).toBeLessThan(startedAt + 11_000)
    const host = await second.get<HistoryAnswer>('/api/v1/host/history?field=cpuRatio&from=-3h')
    expect(host.data[1]?.some((value) => value !== null)).toBe(true)
    type Health = { readonly rooms: { readonly history: { readonly import: { readonly state: string } } } }
    await until(
      'the logs are taken in',
      async () => (await second.get<Health>('/api/v1/health')).rooms.history.import.state === 'done',
      90_000,
    )
    const past = await second.get<HistoryAnswer>(`/api/v1/history?gpu=${GPU}&field=powerWatts&from=-4d&step=10`)
    expect(Math.max(...(past.max?.[0] ?? []).map((value) => value ?? 0))).toBe(59)
    const { stdout } = await run([
      'history',
      '--port',
      new URL(second.url).port,
      '--from',
      '-4d',
      '--gpu',
      GPU,
      '--series',
      'powerWatts',
      '--csv',
    ])
    expect(stdout.split('\n').length).toBeGreaterThan(1)
  }, 180_000)
})

it('an upkeep that is killed again and again loses no record and counts none twice', async () => {
  const dir = await temporaryDir()
  await writeLogs(dir, 1800)
  for (const day of [1, 2, 3]) await keepRecords(dir, seconds(FIRST_DAY + day * DAY, 1200))
  const work = async (killAfterMs: number | null) => {
    const child = fork(new URL('../dist/agent/tiers-child.js', import.meta.url), { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    const news: { type: string; faults?: readonly string[]; reason?: string }[] = []
    child.on('message', (one) => news.push(one as { type: string }))
    child.send({ logDir: dir, before: '2026-03-20' })
    const timer = killAfterMs === null ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    await once(child, 'close')
    clearTimeout(timer)
    return news.at(-1)
  }
  for (let tries = 0; tries < 12; tries++) await work(300 + tries * 70)
  expect(await work(null)).toEqual({ type: 'done', faults: [] })
  const names = await readdir(rootOf(dir), { recursive: true })
  expect(names.filter((name) => /part|commit|jsonl/.test(name))).toEqual([])
  let samples = 0
  for (const name of names.filter((one) => one.startsWith('10s') && one.endsWith('.parquet'))) {
    const bytes = await readFile(join(rootOf(dir), name))
    const rows = await parquetReadObjects({
      file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
      columns: ['samples'],
      compressors: { GZIP: (input) => new Uint8Array(gunzipSync(input)) },
    })
    for (const row of rows) samples += Number(row.samples)
  }
  expect(samples).toBe(1800 + 3 * 1200)
  const rows = table(await ask(dir, { to: FIRST_DAY + 4 * DAY, stepMs: 60_000 }))
  expect(rows[0]).toEqual([FIRST_DAY, 0, 29.5, 59])
}, 120_000)
