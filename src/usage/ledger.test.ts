import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Log } from '../core/kinds.ts'
import { cardWith, runWith } from '../core/model.fixture.ts'
import { compressDays, DayRows, listDays, readDay, sweepDays } from './day-files.ts'
import { readRows } from './ledger.ts'
import { type Booking, generator, isOff, MONTH_END, MONTH_START, month, powerOf, tickAt, truthOf, watchedHours } from './month.fixture.ts'
import { DAY_MS, decodeRow, encodeRow, HOUR_MS, type UsageRow, zeroSums } from './row.ts'
import type { UsageSummary } from './summary.ts'
import { createUsage, type Usage } from './usage.ts'

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => silent }
const T = Date.UTC(2026, 10, 16, 6)
const SETTINGS = { 'usage.keep_days': 400, 'usage.keep_mb': 256, 'usage.price_per_hour': 2, 'usage.prices': {} }

let dir: string
let now = T
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gpuwarden-usage-'))
  now = T
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function start(intervalMs = 1000): Usage {
  const usage = createUsage({ dir, settings: SETTINGS, intervalMs, log: silent, now: () => now, saveMs: 0 })
  usage.accept({ type: 'devices', devices: [cardWith(0)] })
  return usage
}

/** As kill -9 does: the lock stays, and its owner is gone. */
function kill(): void {
  rmSync(join(dir, 'usage.lock'), { force: true })
}

const ADA: Booking = { gpu: 'GPU-0', user: 'ada', job: 'slurm:1', pid: 1, from: T, to: T + DAY_MS, utilization: 0.5, memoryGib: 1 }

function hold(usage: Usage, seconds: number, booking: Booking | null = ADA): void {
  for (let second = 0; second <= seconds; second++) {
    usage.accept(tickAt([cardWith(0)], new Map(booking ? [['GPU-0', booking]] : []), now))
    if (second < seconds) now += 1000
  }
}

async function secondsOf(usage: Usage, from = T - DAY_MS): Promise<number> {
  const { total } = await usage.summary({ from, to: now + HOUR_MS, by: 'user', user: null, simulated: null })
  return Math.round(total.gpuHours * 3600)
}

describe('the ledger', () => {
  it('goes on after a restart, and counts nothing for the time between', async () => {
    const first = start()
    hold(first, 100)
    await first.close()
    now += 600_000
    const second = start()
    hold(second, 50)
    await second.flush()
    expect(await secondsOf(second)).toBe(150)
    expect(second.totals()).toMatchObject([{ user: 'ada', gpuSeconds: 150, busySeconds: 75 }])
    await second.close()
    expect(readdirSync(dir).sort()).toEqual(['2026-11-16.ndjson', 'open.ndjson'])
  })

  it('loses at most what came after the last save, and counts none twice, whenever it is killed', async () => {
    let counted = 0
    for (let life = 0; life < 12; life++) {
      const usage = start()
      await usage.flush()
      hold(usage, 40)
      await usage.flush()
      counted += 40
      hold(usage, 7)
      kill()
      now += 1_000_000
    }
    const usage = start()
    expect(await secondsOf(usage)).toBe(counted)
  })

  it('counts an hour once that was written to its day and whose removal from the open file was not', async () => {
    const first = start()
    hold(first, 60)
    await first.flush()
    const open = readFileSync(join(dir, 'open.ndjson'), 'utf8')
    now = T + 2 * HOUR_MS
    hold(first, 5)
    await first.flush()
    // Killed in between: the day has the hour, and so has the open file of before.
    writeFileSync(join(dir, 'open.ndjson'), open)
    kill()
    const second = start()
    await second.flush()
    expect(await secondsOf(second)).toBe(60)
    expect(second.totals()).toMatchObject([{ gpuSeconds: 60 }])
  })

  it('never lets a counter fall: what is published is on disk', async () => {
    const uneven = { ...ADA, utilization: 1 / 3 }
    let last = { gpuSeconds: 0, busySeconds: 0, energyJoules: 0 }
    for (let life = 0; life < 8; life++) {
      const usage = start()
      await usage.flush()
      for (let round = 0; round < 5; round++) {
        hold(usage, 31, uneven)
        now += 0.7
        if (round % 2 === 0) await usage.flush()
        const [total = last] = usage.totals()
        for (const name of ['gpuSeconds', 'busySeconds', 'energyJoules'] as const) expect(total[name]).toBeGreaterThanOrEqual(last[name])
        last = total
        if (round === 3) now += HOUR_MS
      }
      kill()
    }
    expect(last.gpuSeconds).toBeGreaterThan(300)
  })

  it('counts both when the clock goes back into an hour that is closed', async () => {
    const usage = start()
    hold(usage, 100)
    now = T + 3 * HOUR_MS
    hold(usage, 10)
    await usage.flush()
    now = T + 1000
    hold(usage, 20)
    now = T + 5 * HOUR_MS
    await usage.flush()
    expect(await secondsOf(usage)).toBe(130)
  })

  it('reads past a line that was cut off, and writes after it', async () => {
    mkdirSync(dir, { recursive: true })
    appendFileSync(join(dir, '2026-11-16.ndjson'), '{"hour":"2026-11-16T05:00Z","part":"a","gpu":"GPU-0","us')
    const usage = start()
    hold(usage, 10)
    now = T + 2 * HOUR_MS
    await usage.flush()
    expect(await secondsOf(usage)).toBe(10)
    expect(readFileSync(join(dir, '2026-11-16.ndjson'), 'utf8').split('\n')).toHaveLength(3)
  })

  it('sums the days up again when the open file is lost', async () => {
    const first = start()
    hold(first, 30)
    now = T + 2 * HOUR_MS
    await first.close()
    rmSync(join(dir, 'open.ndjson'))
    const second = start()
    await second.flush()
    expect(second.totals()).toMatchObject([{ user: 'ada', gpuSeconds: 30 }])
  })

  it('leaves the counting to the agent that was there first', async () => {
    const first = start()
    hold(first, 10)
    await first.flush()
    const second = start()
    now -= 10_000
    hold(second, 10)
    await second.flush()
    expect(second.fault()).toMatch(/counts the use of the GPUs in/)
    expect(await secondsOf(second)).toBe(10)
    expect(second.totals()).toEqual([])
  })

  it('counts in memory while the folder cannot be written', async () => {
    writeFileSync(join(dir, 'file'), '')
    const usage = createUsage({
      dir: join(dir, 'file', 'usage'),
      settings: SETTINGS,
      intervalMs: 1000,
      log: silent,
      now: () => now,
      saveMs: 0,
    })
    usage.accept({ type: 'devices', devices: [cardWith(0)] })
    hold(usage, 10)
    await usage.flush()
    expect(usage.fault()).not.toBeNull()
    expect(usage.totals()).toEqual([])
    await usage.close()
  })

  it('knows after a restart what a run has not saved', async () => {
    const first = start()
    const run = runWith({ id: 'r', pid: 1, startedAt: T })
    first.accept({ type: 'run', run })
    hold(first, 20)
    await first.flush()
    kill()
    now += 2 * HOUR_MS
    const second = start()
    second.accept({ type: 'run', run: { ...run, endedAt: now, outcome: 'failed' } })
    await second.flush()
    const { total } = await second.summary({ from: T - DAY_MS, to: now + HOUR_MS, by: 'user', user: null, simulated: null })
    expect(total.lostDeadHours * 3600).toBeCloseTo(20)
  })
})

describe('the files of days', () => {
  const row = (hour: number, gpuSeconds: number): UsageRow => ({
    ...zeroSums(),
    ...{ hour, part: 'p', gpu: 'GPU-0', label: '0', card: 'H100', user: 'ada', job: null, run: null, runName: null, simulated: false },
    gpuSeconds,
  })

  it('hold rows that read back as they were', () => {
    const full = { ...row(T, 12.345), job: 'slurm:1', run: 'r', runName: 'n', simulated: true, energyJoules: 7, memoryByteSeconds: 1e14 }
    expect(decodeRow(encodeRow(full))).toEqual(full)
    for (const text of ['', '[]', 'null', '{"hour":1}', '{"hour":"x","part":"p","gpu":"g","user":"u"}']) expect(decodeRow(text)).toBeNull()
  })

  it('are compressed when they are over, and say the same, also where both are there', async () => {
    const day = join(dir, '2026-11-10.ndjson')
    const lines = [row(Date.UTC(2026, 10, 10), 5), row(Date.UTC(2026, 10, 10), 9)].map(encodeRow).join('\n')
    writeFileSync(day, lines)
    writeFileSync(join(dir, '2026-11-16.ndjson'), encodeRow(row(T, 1)))
    await compressDays(dir, T)
    expect(readdirSync(dir).sort()).toEqual(['2026-11-10.ndjson.gz', '2026-11-16.ndjson'])
    writeFileSync(day, lines)
    const rows = new DayRows()
    await readDay(dir, (await listDays(dir)).slice(0, 2), rows)
    expect([...rows.values()].map(({ gpuSeconds }) => gpuSeconds)).toEqual([9])
  })

  it('are deleted by age and by size, never the newest', async () => {
    for (const [name, bytes] of [
      ['2025-01-01', 10],
      ['2026-11-14', 4000],
      ['2026-11-15', 4000],
      ['2026-11-16', 4000],
    ] as const)
      writeFileSync(join(dir, `${name}.ndjson`), ' '.repeat(bytes))
    await sweepDays(dir, { keepDays: 400, keepBytes: 0 })
    expect(readdirSync(dir)).toHaveLength(3)
    await sweepDays(dir, { keepDays: 400, keepBytes: 9000 })
    expect(readdirSync(dir)).toEqual(['2026-11-15.ndjson', '2026-11-16.ndjson'])
    await sweepDays(dir, { keepDays: 1, keepBytes: 1 })
    expect(readdirSync(dir)).toEqual(['2026-11-16.ndjson'])
  })
})

describe('a month of a shared server', () => {
  const STEP_MS = 60_000

  it('equals its truth within 1%, with times off, restarts and kills', { timeout: 60_000 }, async () => {
    const all = month(7, 4)
    const random = generator(99)
    now = MONTH_START
    let usage = start(STEP_MS)
    const begin = () => usage.accept({ type: 'devices', devices: all.gpus })
    begin()
    const current = new Map<string, Booking>()
    const due = [...all.bookings].sort((a, b) => a.from - b.from)
    let savedAt = now
    for (; now <= MONTH_END; now += STEP_MS) {
      for (const [gpu, booking] of current) if (booking.to <= now) current.delete(gpu)
      while ((due[0]?.from ?? Number.POSITIVE_INFINITY) <= now) {
        const booking = due.shift()
        if (booking) current.set(booking.gpu, booking)
      }
      if (isOff(all, now)) continue
      usage.accept(tickAt(all.gpus, current, now))
      if (now - savedAt < 4 * HOUR_MS) continue
      savedAt = now
      await usage.flush()
      if (random() < 0.06) {
        if (random() < 0.5) await usage.close()
        else kill()
        usage = start(STEP_MS)
        begin()
      }
    }
    await usage.close()
    const summary: UsageSummary = await usage.summary({
      from: MONTH_START,
      to: MONTH_END + HOUR_MS,
      by: 'user',
      user: null,
      simulated: null,
    })
    expect(summary.groups.map(({ key }) => key).sort()).toEqual(['ada', 'ben', 'cleo', 'dan'])
    for (const group of summary.groups) {
      const truth = truthOf(all, group.key)
      for (const name of ['gpuHours', 'busyHours', 'idleHours', 'memoryGibHours', 'energyKwh'] as const)
        expect(Math.abs((group[name] ?? 0) / truth[name] - 1), `${group.key} ${name}`).toBeLessThan(0.01)
      expect(group.cost).toBeCloseTo(group.gpuHours * 2)
    }
    const watched = 4 * watchedHours(all, MONTH_START, MONTH_END)
    expect(Math.abs((summary.total.gpuHours + summary.free.gpuHours) / watched - 1)).toBeLessThan(0.01)
    const freeKwh = (summary.free.gpuHours * powerOf(0)) / 1000
    expect(summary.free.energyKwh ?? 0).toBeCloseTo(freeKwh, 3)
    expect(summary.days.at).toHaveLength(30)
    // What another program reads from the folder is the same.
    let seconds = 0
    for await (const rows of readRows(dir, null, 0, MONTH_END + DAY_MS))
      for (const row of rows) if (row.user !== 'nobody') seconds += row.gpuSeconds
    expect(seconds / 3600).toBeCloseTo(summary.total.gpuHours, 3)
  })
})
