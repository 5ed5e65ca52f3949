import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GpuSample, HostSample, Sample, TrainingStep } from '../model.ts'
import { describeSkipped, openRecording, type RecordingItem, type RecordingStats } from './recording.ts'

const TRACES = fileURLToPath(new URL('../../../fixtures/traces/', import.meta.url))
const START = Date.UTC(2026, 10, 15, 6)

let root: string
let folders = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'gpuwarden-recording-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

async function folderOf(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const folder = join(root, `run-${++folders}`)
  await mkdir(folder)
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return folder
}

async function readAll(path: string): Promise<{ items: RecordingItem[]; samples: Sample[]; stats: RecordingStats }> {
  const recording = await openRecording(path, (model) => (model === null ? 'nameless' : `maker of ${model}`))
  const items: RecordingItem[] = []
  for await (const item of recording) items.push(item)
  return { items, samples: items.flatMap((item) => item.samples), stats: recording.stats() }
}

const time = (seconds: number) => new Date(START + seconds * 1000).toISOString()
const gpuLine = (seconds: number, fields: object = {}) =>
  `${JSON.stringify({ timestamp: time(seconds), gpu_index: 0, utilization_percent: 50, memory_used_mb: 100, processes: [], ...fields })}\n`
const seconds = (samples: readonly Sample[]) => samples.map((sample) => (sample.at - START) / 1000)
const gpus = (samples: readonly Sample[]) => samples.filter((sample): sample is GpuSample => sample.kind === 'gpu')
const hosts = (samples: readonly Sample[]) => samples.filter((sample): sample is HostSample => sample.kind === 'host')

describe('the recorded traces', async () => {
  const names = await readdir(TRACES)
  it('are all ten there', () => {
    expect(names.length).toBe(10)
  })

  it.each(names)('%s is read completely and in order', async (name) => {
    const { items, samples, stats } = await readAll(join(TRACES, name))
    expect(describeSkipped(stats)).toBe(null)
    expect(stats.skipped).toEqual({})
    expect(stats.late).toBe(0)
    expect(samples.length).toBe(stats.lines)
    expect(stats.lines).toBeGreaterThan(800)
    expect(items.map((item) => item.at)).toEqual(items.map((item) => item.at).toSorted((a, b) => a - b))
    expect(items[0]?.at).toBe(stats.firstAt)
    expect(items.at(-1)?.at).toBe(stats.lastAt)
    expect(items.at(-1)?.devices.map((device) => device.id)).toEqual(['replay-gpu-0'])
    expect(new Set(samples.map((sample) => sample.kind))).toEqual(new Set(['gpu', 'step']))
  })

  it('carry the energy counter from the line that held it', async () => {
    const { samples } = await readAll(join(TRACES, 'healthy'))
    const [first, second] = gpus(samples)
    expect(first).toMatchObject({ energyJoules: 14_976.73, slowAt: first?.at, memoryTotalBytes: 143_771 * 1024 * 1024, fanRatio: null })
    expect(second).toMatchObject({ energyJoules: 14_976.73, slowAt: first?.at })
    expect(second?.at).not.toBe(first?.at)
  })

  it('keep NaN as a value of a step', async () => {
    const { samples } = await readAll(join(TRACES, 'divergence'))
    const last = samples.findLast((sample): sample is TrainingStep => sample.kind === 'step')
    expect(last).toMatchObject({ loss: Number.NaN, gradientNorm: Number.NaN, learningRate: 3, run: 'divergence', rank: 0, step: 882 })
  })
})

describe('the files of a recording', () => {
  it('are merged by time, rotated ones and those of several ranks alike', async () => {
    const step = (at: number, rank: number) => `${JSON.stringify({ timestamp: time(at), step: at, loss: 1, rank })}\n`
    const folder = await folderOf({
      'gpu_metrics_1.jsonl': gpuLine(0) + gpuLine(1),
      'gpu_metrics_2.jsonl.gz': gzipSync(gpuLine(2) + gpuLine(3)),
      'training_metrics_rank0.jsonl': step(1, 0) + step(3, 0),
      'training_metrics_rank1.jsonl': step(1, 1) + step(2, 1),
      'notes.jsonl': 'not ours\n',
      'truth.json': '{}',
    })
    const { items, samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual([0, 1, 1, 1, 2, 2, 3, 3])
    expect(items.length).toBe(4)
    expect(items[1]?.samples.map((sample) => (sample.kind === 'step' ? sample.rank : sample.kind))).toEqual(['gpu', 0, 1])
    expect(stats).toMatchObject({ lines: 8, skipped: {}, firstAt: START, lastAt: START + 3000 })
    expect(stats.files.length).toBe(4)
  })

  it('are not read twice when a compressed copy lies beside its original', async () => {
    const folder = await folderOf({ 'gpu_metrics_1.jsonl': gpuLine(0), 'gpu_metrics_1.jsonl.gz': gzipSync(gpuLine(0)) })
    expect((await readAll(folder)).samples.length).toBe(1)
  })

  it('may be given one by one, whatever their name', async () => {
    const folder = await folderOf({ 'mine.log': gpuLine(0), 'steps.txt': `${JSON.stringify({ timestamp: time(0), step: 1, loss: 2 })}\n` })
    expect((await readAll(join(folder, 'mine.log'))).samples).toMatchObject([{ kind: 'gpu' }])
    expect((await readAll(join(folder, 'steps.txt'))).samples).toMatchObject([{ kind: 'step', run: 'recording', rank: 0 }])
  })

  it.each([
    [
      'a path that is not there',
      'missing',
      /cannot read the recording .*missing \(ENOENT\); expected a folder with .*gpu_metrics\*\.jsonl/,
    ],
    ['a folder without recordings', '.', /no recording in the folder .*; expected/],
    ['an empty file', 'gpu_metrics.jsonl', /gpu_metrics\.jsonl is empty/],
    ['a file of something else', 'poem.txt', /poem\.txt is not a recording/],
  ])('are asked for clearly: %s', async (_, name, message) => {
    const folder = await folderOf({ 'poem.txt': 'roses are red\n' })
    const path = join(folder, name)
    if (name === 'gpu_metrics.jsonl') await writeFile(path, '')
    await expect(openRecording(path)).rejects.toThrow(message)
  })

  it('are asked for clearly: no path at all', async () => {
    await expect(openRecording('')).rejects.toThrow(/no recording was given; expected a folder/)
  })

  it('can be left in the middle', async () => {
    const recording = await openRecording(join(TRACES, 'healthy'))
    for await (const item of recording) {
      expect(item.samples.length).toBeGreaterThan(0)
      break
    }
    await recording.close()
    await recording.close()
  })
})

describe('what is wrong in a file', () => {
  it('is skipped and counted by reason, and the rest is used', async () => {
    const folder = await folderOf({
      'gpu_metrics.jsonl': [
        gpuLine(0),
        '{"timestamp": oops}\n',
        '[1,2]\n',
        '{"gpu_index":0}\n',
        gpuLine(1, { utilization_percent: 'high' }),
        gpuLine(2, { processes: [{ pid: 'x' }] }),
        gpuLine(3, { processes: 'none' }),
        gpuLine(4, { gpu_index: undefined }),
        gpuLine(5, { gpu_uuid: 7 }),
        '\n',
        ' \r\n',
        gpuLine(6, { note: 'x'.repeat(1024 * 1024) }),
        gpuLine(7),
        `${'\0'.repeat(100)}\n`,
        gpuLine(8).slice(0, 60),
      ].join(''),
    })
    const { samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual([0, 7])
    expect(stats.skipped).toEqual({ not_json: 2, not_an_object: 1, no_timestamp: 1, wrong_type: 5, too_long: 1, torn: 1 })
    expect(stats.lines).toBe(13)
    expect(describeSkipped(stats)).toMatch(/gpu_metrics\.jsonl: 2 not_json, .*1 torn/)
  })

  it('a last line without a newline is used when it is whole', async () => {
    const folder = await folderOf({ 'gpu_metrics.jsonl': gpuLine(0) + gpuLine(1).trim() })
    const { samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual([0, 1])
    expect(stats.skipped).toEqual({})
  })

  it('an endless line costs no memory and hides nothing after it', async () => {
    const folder = await folderOf({ 'gpu_metrics.jsonl': `${gpuLine(0)}${'x'.repeat(5 * 1024 * 1024)}\n${gpuLine(1)}` })
    const { samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual([0, 1])
    expect(stats.skipped).toEqual({ too_long: 1 })
  })

  it('a truncated gzip file gives what it still holds', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => gpuLine(index, { power_draw_watts: (index * 7919) % 701 }))
    const whole = gzipSync(lines.join(''))
    const folder = await folderOf({ 'gpu_metrics.jsonl.gz': whole.subarray(0, Math.floor(whole.length / 2)) })
    const { samples, stats } = await readAll(folder)
    expect(stats.files[0]?.fault).toBe('gzip_truncated')
    expect(samples.length).toBeGreaterThan(5000)
    expect(samples.length).toBeLessThan(20_000)
    expect(seconds(samples)).toEqual(samples.map((_, index) => index))
  })

  it('a corrupt gzip file gives what came before, and other files go on', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => gpuLine(index, { power_draw_watts: (index * 7919) % 701 }))
    const broken = Buffer.from(gzipSync(lines.join('')))
    broken.fill(0xff, broken.length - 20_000, broken.length - 10_000)
    const folder = await folderOf({
      'gpu_metrics_1.jsonl.gz': broken,
      'gpu_metrics_2.jsonl.gz': 'no gzip at all',
      'gpu_metrics_3.jsonl': gpuLine(30_000),
    })
    const { samples, stats } = await readAll(folder)
    expect(stats.files.map((file) => file.fault)).toEqual(['gzip_corrupt', 'gzip_corrupt', null])
    expect(samples.length).toBeGreaterThan(5000)
    expect(seconds(samples)).toContain(30_000)
  })
})

describe('time inside a file', () => {
  it('is put in order when a line is a little late', async () => {
    const folder = await folderOf({ 'gpu_metrics.jsonl': [0, 2, 1, 5, 3, 4, 6].map((at) => gpuLine(at)).join('') })
    const { samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(stats.late).toBe(0)
  })

  it('is left as it stands when the clock was set back', async () => {
    const times = [...Array.from({ length: 3000 }, (_, index) => 10_000 + index), ...Array.from({ length: 100 }, (_, index) => index)]
    const folder = await folderOf({ 'gpu_metrics.jsonl': times.map((at) => gpuLine(at)).join('') })
    const { samples, stats } = await readAll(folder)
    expect(seconds(samples)).toEqual(times)
    expect(stats.late).toBe(100)
    expect(stats.lastAt).toBe(START + 12_999_000)
  })
})

describe('slow readings', () => {
  it('are replaced as a whole, kept per GPU, and not served for a GPU that is lost', async () => {
    const folder = await folderOf({
      'gpu_metrics.jsonl': [
        gpuLine(0, { energy_joules: 5, pcie_width: 16 }),
        gpuLine(0, { gpu_index: 1 }),
        gpuLine(1),
        gpuLine(2, { energy_joules: 6 }),
        gpuLine(3, { state: 'lost', state_reason: 'gone' }),
        gpuLine(4),
      ].join(''),
    })
    const { samples } = await readAll(folder)
    const slow = gpus(samples).map(({ energyJoules, pcieWidth, slowAt, state }) => [
      energyJoules,
      pcieWidth,
      slowAt === null ? null : (slowAt - START) / 1000,
      state,
    ])
    expect(slow).toEqual([
      [5, 16, 0, 'ok'],
      [null, null, null, 'ok'],
      [5, 16, 0, 'ok'],
      [6, null, 2, 'ok'],
      [null, null, null, 'lost'],
      [null, null, null, 'ok'],
    ])
  })
})

describe('devices', () => {
  it('come from their own lines, else from the first line of each GPU, and a new list reports a change', async () => {
    const real = {
      timestamp: time(0),
      id: 'GPU-a',
      index: 0,
      label: '0',
      vendor: 'nvidia',
      provenance: 'live',
      name: 'NVIDIA H200',
      powerLimitWatts: 700,
    }
    const folder = await folderOf({
      'gpu_devices.jsonl': `${JSON.stringify(real)}\n${JSON.stringify({ ...real, timestamp: time(2) })}\n`,
      'gpu_metrics.jsonl': [
        gpuLine(0, { gpu_uuid: 'GPU-a' }),
        gpuLine(1, { gpu_uuid: 'GPU-a' }),
        gpuLine(3, { gpu_index: 1, gpu_uuid: 'GPU-b', gpu_name: 'AMD Instinct MI300X', memory_total_mb: 196_592 }),
      ].join(''),
    })
    const { items } = await readAll(folder)
    expect(items.map((item) => item.devices.length)).toEqual([1, 1, 1, 2])
    expect(items[2]?.devices).toBe(items[0]?.devices)
    expect(items[0]?.devices[0]).toMatchObject({ id: 'GPU-a', vendor: 'nvidia', provenance: 'replay', powerLimitWatts: 700 })
    expect(items[3]?.devices[1]?.provenance).toBe('replay')
    expect(items[3]?.devices[1]).toMatchObject({
      id: 'GPU-b',
      index: 1,
      label: '1',
      vendor: 'maker of AMD Instinct MI300X',
      memoryTotalBytes: 196_592 * 1024 * 1024,
    })
  })

  it('stay simulated when they were, with and without lines of their own', async () => {
    const own = { timestamp: time(0), gpu_index: 0, id: 'GPU-a', index: 0, vendor: 'nvidia', provenance: 'simulated' }
    const folder = await folderOf({
      'gpu_devices.jsonl': `${JSON.stringify(own)}\n`,
      'gpu_metrics.jsonl': [
        gpuLine(0, { gpu_uuid: 'GPU-a', provenance: 'simulated' }),
        gpuLine(1, { gpu_index: 1, gpu_uuid: 'GPU-b', provenance: 'simulated' }),
        gpuLine(2, { gpu_index: 2, gpu_uuid: 'GPU-c' }),
      ].join(''),
    })
    const { items } = await readAll(folder)
    expect(items.at(-1)?.devices.map((device) => device.provenance)).toEqual(['simulated', 'simulated', 'replay'])
  })
})

describe('processes', () => {
  const row = { pid: 7, memory_used_mb: 10, user: 'alice', name: 'python', started_at: time(-60), host_memory_mb: 512 }

  it('that the GPU lines describe come as a host sample ahead of them, when they change', async () => {
    const folder = await folderOf({
      'gpu_metrics.jsonl': [
        gpuLine(0, { processes: [{ pid: 7, memory_used_mb: 10 }] }),
        gpuLine(1, { processes: [row] }),
        gpuLine(2, { processes: [row] }),
        gpuLine(3, { processes: [{ ...row, host_memory_mb: 513 }] }),
        gpuLine(4, { processes: [] }),
      ].join(''),
    })
    const { items, samples } = await readAll(folder)
    expect(items.map((item) => item.samples.map((sample) => sample.kind).join(' '))).toEqual([
      'gpu',
      'host gpu',
      'gpu',
      'host gpu',
      'host gpu',
    ])
    expect(hosts(samples)[0]).toMatchObject({ hostname: 'recording', cpuRatio: null })
    expect(hosts(samples).map((host) => host.processes.map((info) => [info.user, info.startedAt, info.residentBytes]))).toEqual([
      [['alice', START - 60_000, 512 * 1024 * 1024]],
      [['alice', START - 60_000, 513 * 1024 * 1024]],
      [],
    ])
  })

  it('are merged with the host lines, whose figures are repeated only while they are fresh', async () => {
    const host = { timestamp: time(0), hostname: 'box', cpu_percent: 25, ram_used_mb: 100 }
    const folder = await folderOf({
      'host_metrics.jsonl': `${JSON.stringify(host)}\n`,
      'gpu_metrics.jsonl': [
        gpuLine(0, { processes: [row] }),
        gpuLine(1, { processes: [row, { ...row, pid: 8, user: 'bob' }] }),
        gpuLine(60, { processes: [] }),
      ].join(''),
    })
    const { samples } = await readAll(folder)
    expect(
      hosts(samples).map(({ at, hostname, cpuRatio, processes }) => [at - START, hostname, cpuRatio, processes.map((info) => info.user)]),
    ).toEqual([
      [0, 'box', 0.25, ['alice']],
      [1000, 'box', 0.25, ['alice', 'bob']],
      [60_000, 'box', null, []],
    ])
  })
})
