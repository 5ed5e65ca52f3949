import { readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { HistoryQuery } from '../core/kinds.ts'
import { gpuRecord } from '../core/record.ts'
import { createHistory, type MemoryHistory } from './history.ts'
import { refillHistory } from './refill.ts'
import { eventually, filesOf, GPU, gpuSample, NOON, recordedLog, SETTINGS, temporaryDir, tickEvent } from './sink.contract.ts'
import { createStore } from './store.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const history = () => createHistory({ 'history.samples': 100, 'history.hours': 24 })

const sampleAt = (second: number) =>
  gpuSample(NOON + second * SECOND, {
    powerWatts: 100 + (second % 7),
    memoryUsedBytes: 2 ** 30 + second * 4096,
    utilizationRatio: (second % 101) / 100,
  })

function everything(target: MemoryHistory, query: Partial<HistoryQuery> = {}) {
  const fields = ['powerWatts', 'memoryUsedBytes', 'utilizationRatio'] as const
  return target.query({ gpu: GPU, fields, from: NOON - HOUR, to: NOON + 48 * HOUR, stepMs: MINUTE, ...query })
}

/** Half an hour of samples through a store that rotates often, closed files compressed; and the history that was live then. */
async function record(dir: string): Promise<MemoryHistory> {
  let now = NOON
  const settings = { ...SETTINGS, 'log.rotate_mb': 0.1 }
  const store = createStore({ dir, settings, log: recordedLog(), now: () => now, runId: 'first' })
  const live = history()
  for (let second = 0; second < 1800; second++) {
    now = NOON + second * SECOND
    const event = tickEvent(now, [sampleAt(second)])
    store.accept(event)
    live.accept(event)
    if (second % 60 === 59) await store.flush()
  }
  await eventually(async () => (await filesOf(dir, 'gpu_metrics')).filter((name) => !name.endsWith('.gz')).length <= 1)
  await store.close()
  for (const name of await readdir(dir)) await utimes(join(dir, name), now / 1000, now / 1000)
  return live
}

describe('refill', () => {
  it('gives back what was recorded: every minute and the newest samples', async () => {
    const dir = await temporaryDir()
    const live = await record(dir)
    expect((await filesOf(dir, 'gpu_metrics')).some((name) => name.endsWith('.gz'))).toBe(true)
    const refilled = history()
    const outcome = await refillHistory(refilled, dir, { now: NOON + HOUR, hours: 24 })
    expect(outcome).toMatchObject({ samples: 1800, faults: [] })
    expect(outcome.files).toBeGreaterThan(3)
    const [before, after] = [everything(live), everything(refilled)]
    expect(after.data[0]).toEqual(before.data[0])
    for (const part of ['data', 'min', 'max'] as const) {
      before[part]?.forEach((column, field) => {
        column.forEach((cell, index) => {
          const got = Number(after[part]?.[field]?.[index])
          expect(got === cell ? 1 : got / Number(cell)).toBeCloseTo(1, 6)
        })
      })
    }
    const fullRate = { from: NOON + 1750 * SECOND, stepMs: null }
    expect(everything(refilled, fullRate)).toEqual(everything(live, fullRate))
    expect(everything(refilled, fullRate).data[0]).toHaveLength(50)
  })

  it('does not disturb live samples, nor count them twice', async () => {
    const dir = await temporaryDir()
    await record(dir)
    const refilled = history()
    for (let second = 1790; second < 1795; second++) refilled.accept(tickEvent(NOON + second * SECOND, [sampleAt(second)]))
    const filling = refillHistory(refilled, dir, { now: NOON + HOUR, hours: 24 })
    for (let second = 1795; second < 1830; second++) {
      refilled.accept(tickEvent(NOON + second * SECOND, [sampleAt(second)]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await filling
    const whole = history()
    for (let second = 0; second < 1830; second++) whole.accept(tickEvent(NOON + second * SECOND, [sampleAt(second)]))
    expect(everything(refilled, { from: NOON + 1740 * SECOND, stepMs: null })).toEqual(
      everything(whole, { from: NOON + 1740 * SECOND, stepMs: null }),
    )
    everything(whole).data.forEach((column, index) => {
      column.forEach((cell, row) => {
        expect(everything(refilled).data[index]?.[row]).toBeCloseTo(Number(cell), 3)
      })
    })
  })

  it('leaves out what is too old, and files that were last written before', async () => {
    const dir = await temporaryDir()
    await record(dir)
    const refilled = history()
    const outcome = await refillHistory(refilled, dir, { now: NOON + 24 * HOUR + 900 * SECOND, hours: 24 })
    expect(outcome.samples).toBe(900)
    expect(await refillHistory(history(), dir, { now: NOON + 50 * HOUR, hours: 24 })).toMatchObject({ files: 0, samples: 0 })
    expect(await refillHistory(history(), join(dir, 'nowhere'), { now: NOON, hours: 24 })).toMatchObject({ files: 0, faults: [] })
    await writeFile(join(dir, 'file'), '')
    const outcomeOfFile = await refillHistory(history(), join(dir, 'file'), { now: NOON, hours: 24 })
    expect(outcomeOfFile).toMatchObject({ files: 0, faults: [expect.stringContaining('ENOTDIR')] })
  })

  it('uses what it can of damaged files and names the damage', async () => {
    const dir = await temporaryDir()
    const line = (second: number) => `${JSON.stringify(gpuRecord(sampleAt(second), undefined, []))}\n`
    const good = Array.from({ length: 50 }, (_, second) => line(second)).join('')
    await writeFile(join(dir, 'gpu_metrics_20250730_120000.jsonl'), `${good}not json\n\n[1]\n${line(51).slice(0, 40)}`)
    await writeFile(join(dir, 'gpu_metrics_20250730_110000.jsonl.gz'), gzipSync(good).subarray(0, 200))
    await writeFile(join(dir, 'gpu_metrics_20250730_130000.jsonl'), '')
    const outcome = await refillHistory(history(), dir, { now: Date.now(), hours: 24 * 365 * 100 })
    expect(outcome.samples).toBeGreaterThanOrEqual(50)
    expect(outcome.faults).toEqual([expect.stringContaining('gpu_metrics_20250730_110000.jsonl.gz')])
  })

  it('reads the end of a file that is too large to be read whole', async () => {
    const dir = await temporaryDir()
    const path = join(dir, 'gpu_metrics_20250730_120000.jsonl')
    const padding = `${' '.repeat(512 * 1024)}\n`.repeat(128)
    const lines = Array.from({ length: 100 }, (_, second) => `${JSON.stringify(gpuRecord(sampleAt(second), undefined, []))}\n`).join('')
    await writeFile(path, lines + padding + lines.replaceAll('T12:', 'T13:'))
    const outcome = await refillHistory(history(), dir, { now: Date.now(), hours: 24 * 365 * 100 })
    expect((await readFile(path)).length).toBeGreaterThan(64 * 2 ** 20)
    expect(outcome).toMatchObject({ samples: 100, bytes: 64 * 2 ** 20 })
  })
})
