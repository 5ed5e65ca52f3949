/** The logs outlive a clock that goes wrong. */
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WallClock } from '../core/wall-clock.ts'
import { filesOf, gpuSample, NOON, recordedLog, SETTINGS, temporaryDir, tickEvent } from './sink.contract.ts'
import { createStore } from './store.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Old {
  readonly name: string
  readonly daysAgo: number
}

async function world(files: readonly Old[]) {
  const dir = await temporaryDir()
  for (const { name, daysAgo } of files) {
    await writeFile(join(dir, name), 'x'.repeat(1000))
    const at = new Date(NOON - daysAgo * DAY)
    await utimes(join(dir, name), at, at)
  }
  const time = { now: NOON, monotonicMs: 0 }
  const clock = new WallClock(
    () => undefined,
    () => time.now,
    () => time.monotonicMs,
  )
  const store = createStore({
    dir,
    settings: { ...SETTINGS, 'log.keep_days': 30, 'log.keep_total_mb': 0, 'log.rotate_hours': 24 },
    log: recordedLog(),
    now: () => clock.now(),
    monotonicMs: () => time.monotonicMs,
    sinceJumpMs: () => clock.sinceJumpMs(),
    runId: 'run',
  })
  onTestFinished(() => store.close())
  /** Time passes, a sample is written, and whatever is due in the folder is done. */
  const pass = async (ms: number, jumpMs = 0) => {
    time.now += ms + jumpMs
    time.monotonicMs += ms
    store.accept(tickEvent(time.now, [gpuSample(time.now)]))
    await store.flush()
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  const left = async () => (await filesOf(dir, 'host_metrics')).length
  return { pass, left, dir }
}

const recent = (count: number): Old[] =>
  Array.from({ length: count }, (_, day) => ({ name: `host_metrics_202507${String(30 - day)}_000000.jsonl.gz`, daysAgo: day }))
const ancient = (count: number): Old[] =>
  Array.from({ length: count }, (_, day) => ({ name: `host_metrics_202501${String(10 + day)}_000000.jsonl.gz`, daysAgo: 200 - day }))

describe('retention', () => {
  it('deletes nothing when the clock is a year ahead for six seconds', async () => {
    const { pass, left } = await world(recent(10))
    await pass(1000)
    await pass(1000, 365 * DAY)
    for (let second = 0; second < 5; second++) await pass(1000)
    await pass(1000, -365 * DAY)
    for (let hour = 0; hour < 3; hour++) await pass(HOUR)
    expect(await left()).toBe(10)
  })

  it('deletes nothing at a start with a clock that is a year ahead, for an hour', async () => {
    const { pass, left } = await world(recent(5).map((file) => ({ ...file, daysAgo: file.daysAgo + 365 })))
    await pass(1000)
    for (let minute = 0; minute < 3; minute++) await pass(15 * 60_000)
    expect(await left()).toBe(5)
    await pass(20 * 60_000)
    expect(await left()).toBe(4)
  })

  it('deletes one file a minute, oldest first', async () => {
    const { pass, left, dir } = await world([...recent(1), ...ancient(4)])
    await pass(1000)
    expect(await left()).toBe(4)
    await pass(30_000)
    expect(await left()).toBe(4)
    for (const expected of [3, 2, 1, 1]) {
      await pass(10 * 60_000)
      expect(await left()).toBe(expected)
    }
    expect(await filesOf(dir, 'host_metrics')).toEqual(recent(1).map(({ name }) => name))
  })

  it('begins a new file after the clock was set back by more than a file may last', async () => {
    const { pass, dir } = await world([])
    await pass(1000, 365 * DAY)
    await pass(1000, -365 * DAY)
    expect((await filesOf(dir, 'gpu_metrics')).length).toBe(2)
  })
})
