import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  describeSink,
  eventually,
  filesOf,
  finding,
  GPU,
  gpuInfo,
  gpuSample,
  hostSample,
  NOON,
  recordedLog,
  records,
  SETTINGS,
  temporaryDir,
  textLines,
  tickEvent,
  trainingStep,
} from './sink.contract.ts'
import { createStore, type Store, type StoreOptions } from './store.ts'

describeSink('store', async () => open(await temporaryDir()))

function open(dir: string, settings: Partial<StoreOptions['settings']> = {}, rest: Partial<StoreOptions> = {}): Store {
  const store = createStore({ dir, settings: { ...SETTINGS, ...settings }, log: recordedLog(), now: () => NOON, runId: 'run', ...rest })
  onTestFinished(() => store.close())
  return store
}

describe('files', () => {
  it('writes each kind of line to a file of its own, made with the first line', async () => {
    const dir = join(await temporaryDir(), 'deep', 'logs')
    const store = open(dir)
    await store.flush()
    await expect(stat(dir)).rejects.toThrow('ENOENT')
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    store.accept(tickEvent(NOON, [gpuSample(NOON, { utilizationRatio: 0.955, memoryUsedBytes: 22_500 * 2 ** 20 })], hostSample(NOON)))
    await store.flush()
    expect(store.health()).toMatchObject({ state: 'ok', filesOpened: 3, pendingLines: 0, dropped: 0, gaps: 0, soleWriter: true })
    expect(store.health().currentFiles).toEqual([
      'gpu_metrics_20250730_120000.jsonl',
      'gpu_devices_20250730_120000.jsonl',
      'host_metrics_20250730_120000.jsonl',
    ])
    store.accept({ type: 'steps', steps: [trainingStep(NOON, 7, Number.NaN)], provenance: 'live' })
    store.accept({ type: 'finding', finding: finding(NOON) })
    await store.close()
    expect(await records(dir, 'gpu_metrics')).toMatchObject([
      { timestamp: '2025-07-30T12:00:00.000Z', gpu_index: 0, utilization_percent: 95.5, memory_used_mb: 22_500, gpu_uuid: GPU },
    ])
    expect(await records(dir, 'host_metrics')).toMatchObject([{ hostname: 'box', cpu_percent: 50 }])
    expect(await records(dir, 'gpu_devices')).toMatchObject([{ id: GPU, driverVersion: '580.0' }])
    expect(await records(dir, 'training_metrics')).toMatchObject([{ step: 7, loss: 'NaN', run: 'run' }])
    expect(await records(dir, 'findings')).toMatchObject([
      { at: '2025-07-30T12:00:00.000Z', detector: 'oom', gpu: GPU, pid: 4242, evidence: { slope: 'Infinity' }, predicted_latest_at: null },
    ])
    expect(await filesOf(dir, 'gpu_events')).toEqual([])
    expect((await stat(join(dir, 'findings_20250730_120000.jsonl'))).mode & 0o777).toBe(0o640)
    expect((await stat(dir)).mode & 0o777).toBe(0o750)
  })

  it('goes on past a sample that cannot be a line, and says so with the next', async () => {
    const dir = await temporaryDir()
    const store = open(dir)
    store.accept(tickEvent(NOON, [gpuSample(Number.NaN)]))
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await store.flush()
    expect(() => store.accept(tickEvent(NOON, [gpuSample(NOON + 1000)]))).toThrow(RangeError)
    store.accept(tickEvent(NOON, [gpuSample(NOON + 2000)]))
    await store.flush()
    expect(await textLines(dir, 'gpu_metrics')).toHaveLength(3)
  })

  it('says of a GPU what was known when it was measured', async () => {
    const dir = await temporaryDir()
    const store = open(dir)
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    store.accept({ type: 'devices', devices: [{ ...gpuInfo(), index: 5 }] })
    store.accept(tickEvent(NOON + 1000, [gpuSample(NOON + 1000)]))
    await store.flush()
    expect(await records(dir, 'gpu_metrics')).toMatchObject([{ gpu_index: 0 }, { gpu_index: 5 }])
  })

  it('writes after so many samples, not before', async () => {
    const dir = await temporaryDir()
    const store = open(dir, { 'log.batch_samples': 3 })
    for (const second of [0, 1]) store.accept(tickEvent(NOON, [gpuSample(NOON + second * 1000)]))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await filesOf(dir, 'gpu_metrics')).toEqual([])
    expect(store.health().pendingLines).toBe(2)
    store.accept(tickEvent(NOON, [gpuSample(NOON + 2000)]))
    await eventually(async () => (await textLines(dir, 'gpu_metrics')).length === 3)
  })

  it('writes after so many seconds, however few the samples', async () => {
    const dir = await temporaryDir()
    const store = open(dir, { 'log.batch_seconds': 0.05 })
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await eventually(async () => (await textLines(dir, 'gpu_metrics')).length === 1)
  })

  it('never reuses a file: a taken name gets a number', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'gpu_metrics_20250730_120000.jsonl'), 'not ours\n')
    const store = open(dir)
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await store.close()
    expect(await filesOf(dir, 'gpu_metrics')).toEqual(['gpu_metrics_20250730_120000.jsonl', 'gpu_metrics_20250730_120000_2.jsonl'])
    expect(await readFile(join(dir, 'gpu_metrics_20250730_120000.jsonl'), 'utf8')).toBe('not ours\n')
  })

  it('says a device again only when it changed', async () => {
    const dir = await temporaryDir()
    const store = open(dir)
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    store.accept({ type: 'devices', devices: [{ ...gpuInfo(), driverVersion: '590.0' }] })
    await store.close()
    expect((await records(dir, 'gpu_devices')).map((record) => record.driverVersion)).toEqual(['580.0', '590.0'])
  })
})

describe('rotation', () => {
  it('begins a new file at the size, compresses the old one, and says the devices again', async () => {
    const dir = await temporaryDir()
    const store = open(dir, { 'log.rotate_mb': 0.004 })
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    for (let second = 0; second < 80; second++) {
      store.accept(tickEvent(NOON, [gpuSample(NOON + second * 1000)]))
      await store.flush()
    }
    await eventually(async () => (await filesOf(dir, 'gpu_metrics')).filter((name) => name.endsWith('.gz')).length >= 2)
    await store.close()
    const times = (await records(dir, 'gpu_metrics')).map((record) => record.timestamp)
    expect(times.toSorted()).toEqual(Array.from({ length: 80 }, (_, second) => new Date(NOON + second * 1000).toISOString()))
    expect((await records(dir, 'gpu_devices')).length).toBeGreaterThan(2)
  })

  it('comes to an end where a file should be smaller than the devices that each begins with', async () => {
    const dir = await temporaryDir()
    const store = open(dir, { 'log.rotate_mb': 0.0001, 'log.compress': false })
    store.accept({ type: 'devices', devices: [gpuInfo()] })
    for (let second = 0; second < 6; second++) {
      store.accept(tickEvent(NOON, [gpuSample(NOON + second * 1000)]))
      await store.flush()
    }
    await store.close()
    expect(await records(dir, 'gpu_metrics')).toHaveLength(6)
    const files = await filesOf(dir, 'gpu_devices')
    expect([files.length > 1, files.length < 10]).toEqual([true, true])
  })

  it('begins a new file at the age', async () => {
    const dir = await temporaryDir()
    let now = NOON
    const store = open(dir, { 'log.rotate_hours': 24, 'log.compress': false }, { now: () => now })
    for (const hour of [0, 23, 25]) {
      now = NOON + hour * 3_600_000
      store.accept(tickEvent(now, [gpuSample(now)]))
      await store.flush()
    }
    expect(await filesOf(dir, 'gpu_metrics')).toEqual(['gpu_metrics_20250730_120000.jsonl', 'gpu_metrics_20250731_130000.jsonl'])
  })

  it('deletes what is too old and, oldest first, what is too much; never what is not ours', async () => {
    const dir = await temporaryDir()
    const day = (days: number) => new Date(NOON - days * 86_400_000)
    const names = ['notes.txt', 'gpu_metrics_final.jsonl', 'gpu_metrics_20250101_000000.jsonl.gz', 'host_metrics_20250729_000000.jsonl.gz']
    for (const name of [...names, 'host_metrics_20250730_000000.jsonl.gz']) await writeFile(join(dir, name), 'x'.repeat(600 * 1024))
    for (const name of names.slice(0, 3)) await utimes(join(dir, name), day(200), day(200))
    await utimes(join(dir, 'host_metrics_20250729_000000.jsonl.gz'), day(1), day(1))
    await utimes(join(dir, 'host_metrics_20250730_000000.jsonl.gz'), day(0), day(0))
    let [now, monotonicMs] = [NOON, 0]
    const store = open(dir, { 'log.keep_total_mb': 1 }, { now: () => now, monotonicMs: () => monotonicMs })
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await store.flush()
    for (let minute = 0; minute < 3; minute++) {
      monotonicMs += 60_000
      now += 600_000
      store.accept(tickEvent(now, [gpuSample(now)]))
      await store.flush()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect((await filesOf(dir, 'host_metrics')).includes('host_metrics_20250729_000000.jsonl.gz')).toBe(false)
    await store.close()
    expect(await filesOf(dir, 'gpu_metrics')).toEqual(['gpu_metrics_20250730_120000.jsonl', 'gpu_metrics_final.jsonl'])
    expect(await filesOf(dir, 'host_metrics')).toEqual(['host_metrics_20250730_000000.jsonl.gz'])
    expect((await stat(join(dir, 'notes.txt'))).size).toBe(600 * 1024)
  })
})

describe('a shared folder', () => {
  it('lets a second writer in, with its PID in the names and one warning', async () => {
    const dir = await temporaryDir()
    const log = recordedLog()
    const first = open(dir)
    first.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await first.flush()
    const second = open(dir, {}, { log })
    for (const second_ of [1, 2]) {
      second.accept(tickEvent(NOON, [gpuSample(NOON + second_)]))
      await second.flush()
    }
    expect(second.health()).toMatchObject({ soleWriter: false, currentFiles: [`gpu_metrics_20250730_120000_p${process.pid}.jsonl`] })
    expect(log.messages.map((entry) => entry.level)).toEqual(['warn'])
    await first.close()
    second.accept(tickEvent(NOON, [gpuSample(NOON + 3)]))
    await second.flush()
    expect(second.health().soleWriter).toBe(true)
  })

  it('leaves alone the fresh file of an unknown writer, and takes it once it was quiet', async () => {
    const dir = await temporaryDir()
    const quiet = join(dir, 'training_metrics_20250730_080000.jsonl')
    const fresh = join(dir, 'training_metrics_20250730_115900.jsonl')
    for (const path of [quiet, fresh]) await writeFile(path, '{"step":1}\n')
    await utimes(quiet, new Date(NOON - 2 * 3_600_000), new Date(NOON - 2 * 3_600_000))
    await utimes(fresh, new Date(NOON - 60_000), new Date(NOON - 60_000))
    await mkdir(join(dir, 'gpu_metrics_20250101_000000.jsonl'))
    await writeFile(join(dir, 'host_metrics_20250101_000000.jsonl.gz.tmp'), 'half')
    const store = open(dir)
    store.accept(tickEvent(NOON, [gpuSample(NOON)]))
    await store.flush()
    await eventually(async () => (await filesOf(dir, 'training_metrics')).includes('training_metrics_20250730_080000.jsonl.gz'))
    expect(await filesOf(dir, 'training_metrics')).toEqual([
      'training_metrics_20250730_080000.jsonl.gz',
      'training_metrics_20250730_115900.jsonl',
    ])
    expect(await filesOf(dir, 'host_metrics')).toEqual([])
  })
})
