import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { GPU, gpuSample, hostSample, recordedLog, SETTINGS, temporaryDir, tickEvent } from '../sink.contract.ts'
import { createStore } from '../store.ts'
import { closeDays, openDays } from './close-days.ts'
import { Commit, recover } from './commit.ts'
import { importLogs } from './import-logs.ts'
import { TierRetention, tooMuch } from './retention.ts'
import { readState } from './state.ts'
import { ask, DAY, FIRST_DAY, rootOf, run, seconds, table } from './tiers.fixture.ts'
import { keepUp, type UpkeepNews } from './upkeep-work.ts'

/** Answers of all tiers. */
async function everything(dir: string) {
  const spans = [2 * 3_600_000, DAY, 30 * DAY, 365 * DAY]
  const answers = []
  for (const span of spans) answers.push(table(await ask(dir, { from: FIRST_DAY, to: FIRST_DAY + span })))
  return answers
}

/** A mean is kept in single precision, a moment in full. */
function alike(a: Awaited<ReturnType<typeof everything>>, b: Awaited<ReturnType<typeof everything>>) {
  const rounded = (rows: typeof a) =>
    rows.map((one) => one.map((row) => row.map((value) => (value === null ? null : Number(value.toPrecision(6))))))
  expect(rounded(a)).toEqual(rounded(b))
}

describe('closing a day', () => {
  it('changes no answer, and takes the place of the journal', async () => {
    const dir = await temporaryDir()
    await run(dir, [...seconds(FIRST_DAY, 3000), ...seconds(FIRST_DAY + DAY, 30), { at: FIRST_DAY, host: hostSample(FIRST_DAY) }])
    const before = await everything(dir)
    expect(await closeDays({ root: rootOf(dir), before: '2026-03-11' })).toEqual([])
    alike(await everything(dir), before)
    expect(await openDays(rootOf(dir))).toEqual(['2026-03-11'])
    expect((await readdir(rootOf(dir), { recursive: true })).filter((name) => name.endsWith('.parquet')).sort()).toEqual(
      ['host', GPU]
        .flatMap((device) => [
          `10s/${device}/2026-03-10.parquet`,
          `15min/${device}/2026-03.parquet`,
          `1h/${device}/2026.parquet`,
          `1min/${device}/2026-03-10.parquet`,
        ])
        .sort(),
    )
  })

  it('adds later records of the same day, after a clock that was set back', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 30))
    await closeDays({ root: rootOf(dir), before: '2026-03-11' })
    await run(dir, [{ at: FIRST_DAY + 5000, readings: { powerWatts: 400 } }, ...seconds(FIRST_DAY + 60_000, 30)])
    const before = await everything(dir)
    await closeDays({ root: rootOf(dir), before: '2026-03-11' })
    alike(await everything(dir), before)
    expect(before[0]?.[0]).toEqual([FIRST_DAY, 0, (45 + 400) / 11, 400])
  })

  it('keeps readings that are there for a part of the day, with their counts', async () => {
    const dir = await temporaryDir()
    await run(dir, [
      ...seconds(FIRST_DAY, 5),
      ...Array.from({ length: 15 }, (_, index) => ({ at: FIRST_DAY + 5000 + index * 1000, readings: { fanRatio: 0.3 } })),
    ])
    await closeDays({ root: rootOf(dir), before: '2026-03-11' })
    const answer = await ask(dir, { fields: ['powerWatts', 'fanRatio'], to: FIRST_DAY + 2 * 3_600_000 })
    expect(answer.data.slice(1)).toEqual([
      [2, null],
      [0.3, 0.3],
    ])
  })

  it('keeps a damaged file beside the new one, and names it', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 30))
    const path = join(rootOf(dir), '15min', GPU, '2026-03.parquet')
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, 'not Parquet')
    const faults = await closeDays({ root: rootOf(dir), before: '2026-03-11' })
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain('2026-03.parquet')
    expect(await readFile(`${path}.damaged`, 'utf8')).toBe('not Parquet')
    expect(table(await ask(dir, { to: FIRST_DAY + 30 * DAY }))).toHaveLength(1)
  })
})

describe('a set of changes', () => {
  it('is done again when it was interrupted, and forgotten when it was only begun', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'old'), 'old')
    await new Commit(dir).stage({ path: 'begun', bytes: 'x' })
    await recover(dir)
    expect(await readdir(dir)).toEqual(['old'])
    // As a kill after the note leaves it.
    await writeFile(join(dir, 'new.part'), 'new')
    await writeFile(join(dir, 'commit.json'), JSON.stringify({ renames: ['new', 'done'], removes: ['old', 'gone'] }))
    await recover(dir)
    expect(await readdir(dir)).toEqual(['new'])
  })

  it('touches nothing outside of its folder', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'precious'), 'x')
    await mkdir(join(dir, 'in'))
    await writeFile(join(dir, 'in', 'commit.json'), JSON.stringify({ renames: [], removes: ['../precious'] }))
    await recover(join(dir, 'in'))
    expect(await readdir(dir)).toContain('precious')
  })
})

describe('logs from before', () => {
  async function logs(dir: string): Promise<void> {
    let now = FIRST_DAY
    const store = createStore({
      dir,
      settings: { ...SETTINGS, 'log.rotate_hours': 1 / 6 },
      log: recordedLog(),
      now: () => now,
      runId: 'test',
    })
    for (let index = 0; index < 1800; index++) {
      now = FIRST_DAY + index * 1000
      store.accept(tickEvent(now, [gpuSample(now, { powerWatts: index % 600 })], index % 10 === 0 ? hostSample(now) : null))
      if (index % 300 === 299) await store.flush()
    }
    await store.close()
  }

  it('are taken in once, whenever it is interrupted', async () => {
    const dir = await temporaryDir()
    await logs(dir)
    // Records begin in the middle: the logs go on, and are not taken twice.
    await run(dir, [...seconds(FIRST_DAY, 1800)].slice(900))
    let done = 0
    for (let tries = 0; (await readState(rootOf(dir)))?.imported !== null; tries++) {
      expect(tries).toBeLessThan(20)
      await recover(rootOf(dir))
      await importLogs({
        logDir: dir,
        onLogDone: async () => {
          done += 1
          throw new Error('killed')
        },
      }).catch(() => undefined)
    }
    expect(done).toBeGreaterThan(2)
    const rows = table(await ask(dir, { to: FIRST_DAY + 2 * 3_600_000 }))
    expect(rows).toEqual(
      Array.from({ length: 180 }, (_, ten) => [FIRST_DAY + ten * 10_000, (ten % 60) * 10, (ten % 60) * 10 + 4.5, (ten % 60) * 10 + 9]),
    )
    const journal = (await readdir(join(rootOf(dir), 'journal'))).map((name) => readFile(join(rootOf(dir), 'journal', name), 'utf8'))
    const samples = (await Promise.all(journal))
      .join('\n')
      .split('\n')
      .filter((line) => line.includes(GPU))
    expect(samples.reduce((sum, line) => sum + (JSON.parse(line) as { samples: number }).samples, 0)).toBe(1800)
  })

  it('are reported while they are read, and closed by day', async () => {
    const dir = await temporaryDir()
    await logs(dir)
    await run(dir, seconds(FIRST_DAY + 2 * DAY, 30))
    const news: UpkeepNews[] = []
    await keepUp({ logDir: dir, before: '2026-03-12' }, (one) => news.push(one))
    expect(news.at(-1)).toEqual({ type: 'done', faults: [] })
    expect(news.filter(({ type }) => type === 'import').at(-1)).toMatchObject({ doneBytes: expect.any(Number) })
    expect(news).toContainEqual({ type: 'day', day: '2026-03-10' })
    expect(await openDays(rootOf(dir))).toEqual(['2026-03-12'])
    expect(table(await ask(dir, { to: FIRST_DAY + 2 * 3_600_000 }))).toHaveLength(180)
  })

  it('that are damaged are named', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'gpu_metrics_20260309_000000.jsonl.gz'), 'not gzip')
    await run(dir, seconds(FIRST_DAY, 30))
    expect(await importLogs({ logDir: dir })).toEqual([expect.stringContaining('gpu_metrics_20260309_000000.jsonl.gz')])
    expect((await readState(rootOf(dir)))?.imported).toBeNull()
  })
})

describe('what is deleted', () => {
  const file = (tier: string, day: number, bytes = 100) => ({ path: `${tier}/${day}`, tier, from: day * DAY, end: (day + 1) * DAY, bytes })
  const keep = { keepFinestDays: 14, keepDays: 400, keepBytes: 0 }

  it('is too old, counted from the newest record', () => {
    const files = [file('10s', 0), file('10s', 5), file('10s', 20), file('1min', 0), file('1min', 20)]
    expect(tooMuch(files, 21 * DAY, keep).map(({ path }) => path)).toEqual(['10s/0', '10s/5'])
    expect(tooMuch(files, 21 * DAY, { ...keep, keepFinestDays: 0 })).toEqual([])
  })

  it('is too much: the oldest first, what is coarse last, and never the newest', () => {
    const month = { path: '15min/2026-01', tier: '15min', from: 0, end: 31 * DAY, bytes: 100 }
    const files = [
      month,
      { ...month, path: '15min/2026-02', from: 31 * DAY, end: 59 * DAY },
      file('1min', 3),
      file('1min', 4),
      file('10s', 4),
      file('10s', 50),
      file('1min', 50),
    ]
    expect(tooMuch(files, 51 * DAY, { ...keep, keepFinestDays: 0, keepBytes: 500 }).map(({ path }) => path)).toEqual(['1min/3', '1min/4'])
    expect(tooMuch(files, 51 * DAY, { ...keep, keepFinestDays: 0, keepBytes: 1 }).map(({ path }) => path)).toEqual([
      '1min/3',
      '1min/4',
      '10s/4',
      '15min/2026-01',
    ])
  })

  it('goes one file a minute, and not while the clock may be wrong', async () => {
    const dir = await temporaryDir()
    for (const day of [10, 11, 12, 13]) {
      await run(dir, seconds(Date.UTC(2026, 2, day), 20))
    }
    await closeDays({ root: rootOf(dir), before: '2026-03-14' })
    let monotonic = 0
    let sinceJump = 0
    const clock = { now: () => Date.UTC(2026, 2, 14), monotonicMs: () => monotonic, sinceJumpMs: () => sinceJump }
    const retention = new TierRetention({ logDir: dir, log: recordedLog(), keepFinestDays: 1, keepDays: 1, keepBytes: 0, ...clock })
    const left = async () => (await readdir(join(rootOf(dir), '10s', GPU))).length + (await readdir(join(rootOf(dir), '1min', GPU))).length
    expect(await retention.sweep()).toBe(false)
    expect(await left()).toBe(8)
    sinceJump = Number.POSITIVE_INFINITY
    for (let minute = 0; minute < 4; minute++) {
      expect(await retention.sweep()).toBe(minute < 3)
      expect(await left()).toBe(7 - minute)
      if (minute < 3) expect(await retention.sweep()).toBe(true)
      monotonic += 60_000
    }
    expect(await retention.sweep()).toBe(false)
    expect(await left()).toBe(4)
  })
})
