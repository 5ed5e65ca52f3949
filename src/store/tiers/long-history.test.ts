import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createHistory } from '../history.ts'
import { GPU, gpuSample, hostSample, recordedLog, SETTINGS, temporaryDir, tickEvent } from '../sink.contract.ts'
import { createStore } from '../store.ts'
import { createLongHistory } from './long-history.ts'
import { TierRecorder } from './recorder.ts'
import { TIERS, tierFile } from './tier-table.ts'
import { ask, DAY, FIRST_DAY, rootOf, run, seconds, table } from './tiers.fixture.ts'

describe('a span of the past', () => {
  it('has least, mean and most of every ten seconds', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 60))
    const answer = await ask(dir, { to: FIRST_DAY + 2 * 3_600_000 })
    expect(answer.stepMs).toBe(10_000)
    expect(table(answer)).toEqual([0, 1, 2, 3, 4, 5].map((ten) => [FIRST_DAY + ten * 10_000, ten * 10, ten * 10 + 4.5, ten * 10 + 9]))
  })

  it('is a gap where the machine was off, not a line', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 600))
    await run(dir, seconds(FIRST_DAY + 2 * DAY, 600))
    const rows = table(await ask(dir, { to: FIRST_DAY + 3 * DAY, points: 1500 }))
    const known = rows.filter(([, , mean]) => mean !== null)
    expect(known.length).toBeGreaterThan(2)
    const [first, last] = [
      rows.findIndex(([at]) => at !== null && at >= FIRST_DAY + 600_000),
      rows.findLastIndex(([at]) => at !== null && at < FIRST_DAY + 2 * DAY),
    ]
    expect(last - first).toBeGreaterThan(500)
    for (const [, least, mean, most] of rows.slice(first, last + 1)) expect([least, mean, most]).toEqual([null, null, null])
  })

  it('keeps a peak of one second in any span', async () => {
    const dir = await temporaryDir()
    const peak = FIRST_DAY + 5 * 3_600_000
    await run(
      dir,
      (function* () {
        for (let at = FIRST_DAY; at < FIRST_DAY + 10 * 3_600_000; at += 5000)
          yield { at, readings: { powerWatts: at === peak ? 700 : 100 } }
      })(),
    )
    for (const span of [DAY, 30 * DAY, 365 * DAY]) {
      const rows = table(await ask(dir, { from: FIRST_DAY + DAY - span, to: FIRST_DAY + DAY, points: 1500 }))
      expect(Math.max(...rows.map(([, , , most]) => most ?? 0))).toBe(700)
      expect(Math.max(...rows.map(([, , mean]) => mean ?? 0))).toBeLessThan(700)
    }
  })

  it('adds up what a restart in the middle of ten seconds has split', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 4))
    await run(dir, [{ at: FIRST_DAY + 4000, readings: { powerWatts: 20 } }])
    const [row] = table(await ask(dir, { to: FIRST_DAY + 3_600_000 }))
    expect(row).toEqual([FIRST_DAY, 0, (0 + 1 + 2 + 3 + 20) / 5, 20])
  })

  it('does not lose or mix readings that are null for a part of the time', async () => {
    const dir = await temporaryDir()
    const half = (index: number) => (index < 5 ? { powerWatts: 100 } : { powerWatts: null, fanRatio: 0.4 })
    await run(
      dir,
      Array.from({ length: 10 }, (_, index) => ({ at: FIRST_DAY + index * 1000, readings: half(index) })),
    )
    const answer = await ask(dir, { fields: ['powerWatts', 'fanRatio', 'temperatureCelsius'], to: FIRST_DAY + 3_600_000 })
    expect(answer.data.slice(1)).toEqual([[100], [0.4], [null]])
  })

  it('survives a clock that is set ahead and back', async () => {
    const dir = await temporaryDir()
    await run(dir, [...seconds(FIRST_DAY, 20), ...seconds(FIRST_DAY + 400 * DAY, 20), ...seconds(FIRST_DAY + 10_000, 30)])
    const rows = table(await ask(dir, { to: FIRST_DAY + 3_600_000 })).filter(([, , mean]) => mean !== null)
    expect(rows.map(([at]) => at)).toEqual([0, 1, 2, 3].map((ten) => FIRST_DAY + ten * 10_000))
    // Seen twice: 10 to 19 before the clock was set, 0 to 9 after it was set back.
    expect(rows[1]).toEqual([FIRST_DAY + 10_000, 0, 9.5, 19])
  })

  it('has no gaps between samples that are half a minute apart', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 60, 30_000))
    const answer = await ask(dir, { to: FIRST_DAY + 3_600_000 })
    expect(answer.stepMs).toBe(30_000)
    expect(table(answer).filter(([, , mean]) => mean === null)).toEqual([])
  })

  it('knows a GPU that came and one that went', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 20))
    await run(dir, [{ at: FIRST_DAY + 60_000, readings: { powerWatts: 50 }, gpu: '0000:8d:00.0' }])
    const history = createLongHistory({ logDir: dir, memory: null, isFilled: () => false, onDamage: () => undefined })
    expect([...(await history.devices())].sort()).toEqual(['0000:8d:00.0', GPU])
    expect(table(await ask(dir, { gpu: '0000:8d:00.0', to: FIRST_DAY + 3_600_000 }))).toHaveLength(1)
  })

  it('is empty without files, in the future, and from the end to the beginning', async () => {
    const dir = await temporaryDir()
    const empty = { data: [[], []], min: null, max: null }
    expect(await ask(dir, {})).toMatchObject(empty)
    await run(dir, seconds(FIRST_DAY, 20))
    expect(await ask(dir, { from: FIRST_DAY + 900 * DAY, to: FIRST_DAY + 901 * DAY })).toMatchObject(empty)
    expect(await ask(dir, { from: FIRST_DAY + DAY, to: FIRST_DAY })).toMatchObject(empty)
    expect((await ask(dir, { to: 8.64e15 })).data[1]).toHaveLength(1)
  })

  it('names a damaged file and reads the others', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 600))
    const path = join(rootOf(dir), tierFile(TIERS[2] ?? { name: '15min', stepMs: 900_000, period: 'month' }, GPU, FIRST_DAY - 30 * DAY))
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, 'PAR1 this is none')
    const damaged: string[] = []
    const rows = table(await ask(dir, { from: FIRST_DAY - 30 * DAY, to: FIRST_DAY + DAY }, damaged))
    expect(damaged).toEqual([path])
    expect(rows.at(-1)?.[3]).toBe(599)
  })

  it('reads past a line that a crash has cut off', async () => {
    const dir = await temporaryDir()
    await run(dir, seconds(FIRST_DAY, 20))
    await writeFile(join(rootOf(dir), 'journal', '2026-03-10T00.jsonl'), '{"device":"GPU-0000', { flag: 'a' })
    await run(dir, seconds(FIRST_DAY + 20_000, 20))
    expect(table(await ask(dir, { to: FIRST_DAY + 3_600_000 }))).toHaveLength(4)
  })

  it('is of the host, too', async () => {
    const dir = await temporaryDir()
    await run(dir, [{ at: FIRST_DAY, host: hostSample(FIRST_DAY) }])
    const answer = await ask(dir, { gpu: 'host', fields: ['cpuRatio', 'diskFreeBytes'], to: FIRST_DAY + 3_600_000 })
    expect(answer.data.slice(1)).toEqual([[0.5], [2 ** 39]])
  })
})

describe('a short time', () => {
  it('is shown as it was taken where the log is, else in records', async () => {
    const dir = await temporaryDir()
    const store = createStore({ dir, settings: SETTINGS, log: recordedLog(), now: () => FIRST_DAY, runId: 'test' })
    for (let index = 0; index < 300; index++)
      store.accept(tickEvent(FIRST_DAY + index * 1000, [gpuSample(FIRST_DAY + index * 1000, { powerWatts: index })]))
    await store.close()
    await run(dir, [...seconds(FIRST_DAY, 300), ...seconds(FIRST_DAY + 3_600_000, 60)])
    const raw = await ask(dir, { from: FIRST_DAY + 60_000, to: FIRST_DAY + 120_000 })
    expect(raw.stepMs).toBe(0)
    expect(raw.data[1]).toEqual(Array.from({ length: 61 }, (_, index) => 60 + index))
    expect((await ask(dir, { from: FIRST_DAY + 3_600_000, to: FIRST_DAY + 3_660_000 })).stepMs).toBe(10_000)
  })
})

describe('with an agent', () => {
  it('goes on with what is in memory and in no record yet', async () => {
    const dir = await temporaryDir()
    const memory = createHistory({ 'history.samples': 60, 'history.hours': 24 })
    const recorder = new TierRecorder({ logDir: dir, log: recordedLog(), now: () => FIRST_DAY, inCharge: () => null })
    for (const { at, readings } of seconds(FIRST_DAY, 7200)) {
      const event = tickEvent(at, [gpuSample(at, readings)])
      memory.accept(event)
      recorder.accept(event)
    }
    const history = createLongHistory({ logDir: dir, memory, isFilled: () => true, onDamage: () => undefined })
    const query = { gpu: GPU, fields: ['powerWatts'] as const, from: FIRST_DAY - 2 * DAY, to: FIRST_DAY + DAY, stepMs: null }
    const rows = table(await history.query(query))
    expect(rows).toHaveLength(120 - 1)
    expect(rows.at(-1)).toEqual([FIRST_DAY + 7140_000, 540, 569.5, 599])
    const fine = table(await history.query({ ...query, from: FIRST_DAY, to: FIRST_DAY + 2 * 3_600_000 }))
    expect(fine.at(-1)).toEqual([FIRST_DAY + 7190_000, 590, 594.5, 599])
    await recorder.close()
  })
})

describe('the recorder', () => {
  it('waits for the disk and loses nothing when it comes back', async () => {
    const dir = await temporaryDir()
    await writeFile(rootOf(dir), 'a file where the folder should be')
    const log = recordedLog()
    let now = FIRST_DAY
    const recorder = new TierRecorder({ logDir: dir, log, now: () => now, inCharge: () => true })
    const accept = (from: number, count: number) => {
      for (const { at, readings } of seconds(from, count)) recorder.accept(tickEvent(at, [gpuSample(at, readings)]))
    }
    accept(FIRST_DAY, 30)
    now = FIRST_DAY + 9990
    await new Promise((resolve) => setTimeout(resolve, 50))
    accept(FIRST_DAY + 30_000, 10)
    await rm(rootOf(dir))
    await recorder.close()
    expect(table(await ask(dir, { to: FIRST_DAY + 3_600_000 }))).toHaveLength(4)
    expect(recorder.health()).toMatchObject({ pendingLines: 0, dropped: 0 })
  })

  it('writes nothing beside another agent of the same folder', async () => {
    const dir = await temporaryDir()
    const recorder = new TierRecorder({ logDir: dir, log: recordedLog(), now: () => FIRST_DAY, inCharge: () => false })
    for (const { at, readings } of seconds(FIRST_DAY, 30)) recorder.accept(tickEvent(at, [gpuSample(at, readings)]))
    await recorder.close()
    expect(await ask(dir, {})).toMatchObject({ data: [[], []] })
  })
})
