/** `gpuwarden report`: from a log folder to text, JSON and one HTML file. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import vm from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { costOf } from '../src/core/gpu-cost.ts'
import { listPrice } from '../src/core/gpu-price.ts'
import { ledgerOf } from '../src/core/memory/ledger.ts'
import type { GpuInfo, GpuSample, TrainingStep } from '../src/core/model.ts'
import { deviceRecord, gpuRecord, NO_FIGURES, NO_READINGS, stepRecord } from '../src/core/record.ts'
import type { ReportPageData } from '../src/core/report-page.ts'
import { BUCKETS, TimeBuckets } from '../src/report/training-buckets.ts'
import { GpuUse } from '../src/report/training-gpu-use.ts'
import { buildReport } from '../src/report/training-report.ts'
import { summaryText } from '../src/report/training-text.ts'
import { RunFiles } from '../src/training/run-files.ts'
import { BIN, FIXTURES, run, temporaryFolder } from './program.ts'

const T = Date.UTC(2026, 0, 5)
const GIB = 1024 ** 3

const info = (index: number): GpuInfo =>
  ({
    id: `GPU-${index}`,
    index,
    label: String(index),
    vendor: 'nvidia',
    provenance: 'live',
    name: 'NVIDIA H200',
    memoryTotalBytes: 140 * GIB,
    mig: null,
    unifiedMemory: false,
    unavailable: {},
  }) as unknown as GpuInfo

const sample = (index: number, seconds: number): GpuSample => ({
  kind: 'gpu',
  at: T + seconds * 1000,
  gpu: `GPU-${index}`,
  state: 'ok',
  stateReason: null,
  slowAt: null,
  ...NO_READINGS,
  utilizationRatio: 0.5,
  tensorActiveRatio: 0.25,
  memoryTotalBytes: 140 * GIB,
  memoryUsedBytes: (60 + index) * GIB,
  memoryReservedBytes: GIB,
  temperatureCelsius: 60,
  powerWatts: 360,
  processes: [
    {
      pid: 100 + index,
      type: 'compute',
      memoryUsedBytes: 55 * GIB,
      smRatio: null,
      memoryRatio: null,
      encoderRatio: null,
      decoderRatio: null,
    },
  ],
})

const step = (rank: number, number: number, loss: number): TrainingStep => ({
  kind: 'step',
  at: T + number * 1000,
  run: 'r1',
  rank,
  step: number,
  ...NO_FIGURES,
  loss,
  learningRate: 1e-4,
  gradientNorm: 1,
  throughputPerSecond: 10,
  stepSeconds: 0.9,
  memoryAllocatedBytes: 40 * GIB,
  memoryReservedBytes: 50 * GIB,
  memoryActiveBytes: 41 * GIB,
  memoryInactiveSplitBytes: 2 * GIB,
  memoryPeakAllocatedBytes: 45 * GIB,
  allocRetries: 0,
  oomCount: 0,
  phaseSeconds: null,
  custom: null,
})

const MEAN = '<!--</script><img src=x onerror=alert(1)>'

/** Ten minutes, two GPUs, a run of two ranks that becomes NaN once, and a finding with a mean message. */
function recording(): string {
  const dir = temporaryFolder()
  const write = (name: string, records: readonly object[]) =>
    writeFileSync(join(dir, `${name}_20260105_000000.jsonl`), records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  const seconds = Array.from({ length: 600 }, (_, index) => index)
  write(
    'gpu_devices',
    [0, 1].map((index) => deviceRecord(info(index), T)),
  )
  write(
    'gpu_metrics',
    seconds.flatMap((at) =>
      [0, 1].map((index) =>
        gpuRecord(
          sample(index, at),
          info(index),
          (sample(index, at).processes ?? []).map((one) => ({ ...one, gpu: `GPU-${index}`, info: null })),
        ),
      ),
    ),
  )
  write(
    'training_metrics',
    seconds.flatMap((at) => [0, 1].map((rank) => stepRecord(step(rank, at, at === 300 ? Number.NaN : 2 / (at + 1))))),
  )
  const finding = { detector: 'thermal', severity: 'critical', gpu_index: 1, run: null, advice: ['Look at the fans.'], fingerprint: 'f' }
  write('findings', [
    {
      ...finding,
      at: new Date(T + 100_000).toISOString(),
      since: new Date(T + 90_000).toISOString(),
      state: 'active',
      message: MEAN,
    },
    {
      ...finding,
      at: new Date(T + 200_000).toISOString(),
      since: new Date(T + 90_000).toISOString(),
      state: 'resolved',
      message: 'over',
      severity: 'info',
    },
  ])
  mkdirSync(join(dir, 'runs'))
  const record = {
    id: 'r1',
    name: 'train.py',
    startedAt: T + 60_000,
    endedAt: T + 300_000,
    outcome: 'oom',
    message: 'CUDA out of memory',
    gpus: ['GPU-1'],
    pid: 100,
    updatedAt: 1,
    report: { ledger: { torch: 5 } },
  }
  writeFileSync(join(dir, 'runs', 'r1.run.json'), JSON.stringify(record))
  writeFileSync(
    join(dir, 'runs', 'r1.progress.json'),
    JSON.stringify({
      ranks: [
        [0, { pid: 100 }],
        [1, { pid: 101 }],
      ],
    }),
  )
  return dir
}

const request = (path: string) => ({ path, run: null, pricePerGpuHour: 2, ledgerOf, pidOf: (_: string, rank: number) => 100 + rank })

function dataOf(html: string): ReportPageData {
  return JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(html)?.[1] ?? '') as ReportPageData
}

describe('a report', () => {
  it('of a folder sums up GPUs, energy, cost, training and findings', async () => {
    const { summary } = await buildReport(request(recording()))
    expect(summary.gpuHours).toBeCloseTo((2 * 599) / 3600, 3)
    expect(summary.energyKilowattHours).toBeCloseTo((2 * 360 * 599) / 3.6e6, 4)
    expect(summary.cost).toMatchObject({ pricePerGpuHour: 2, isEstimate: false })
    expect(summary.gpus.map(({ use }) => [use.meanUtilizationRatio, use.peakMemoryUsedBytes])).toEqual([
      [0.5, 60 * GIB],
      [0.5, 61 * GIB],
    ])
    expect(summary.training).toMatchObject({ steps: 600, lastStep: 599, throughputPerSecond: expect.closeTo(10), stepsPerSecond: 1 })
    expect(summary.findings).toMatchObject([{ at: T + 90_000, until: T + 200_000, severity: 'critical', detector: 'thermal' }])
  })

  it('says at its head that GPUs are simulated, or not known to be those of the run', async () => {
    const run = { id: 'r1', name: 'r', startedAt: T, endedAt: null, outcome: null, message: null, gpus: [], report: null }
    const { summary, html } = await buildReport({ ...request(recording()), run })
    expect(summary.notes).toEqual([
      expect.stringContaining('It is unknown which GPUs the run used'),
      expect.stringContaining('has not reported its end'),
    ])
    expect(summary.gpus.length).toBe(2)
    const page = html('0', T)
    expect(page.indexOf('Which GPUs')).toBeLessThan(page.indexOf('class="tiles"'))
    expect((await buildReport({ ...request(recording()), run: { ...run, gpus: ['GPU-1'] } })).summary.notes.length).toBe(1)
  })

  it('of a run counts its own processes in its memory peak, and no simulated GPU beside it', async () => {
    const run = { id: 'r1', name: 'r', startedAt: T, endedAt: T + 300_000, outcome: null, message: null, gpus: ['GPU-1'], report: null }
    const own = { ...request(recording()), run, pidsOf: () => [101] }
    const { summary } = await buildReport(own)
    expect(summary.gpus).toMatchObject([{ id: 'GPU-1', peakProcessBytes: 55 * GIB, use: { peakMemoryUsedBytes: 61 * GIB } }])
    expect(summaryText(summary)).toContain('GPU 1     memory peak 55.0 GiB of 140.0 GiB, with other processes 61.0 GiB, mean')
    const folder = recording()
    for (const name of readdirSync(folder).filter((one) => one.startsWith('gpu_')))
      writeFileSync(
        join(folder, name),
        readFileSync(join(folder, name), 'utf8').replaceAll('"provenance":"live"', '"provenance":"simulated"'),
      )
    const beside = (await buildReport({ ...own, path: folder, run: { ...run, gpus: ['1'] } })).summary
    expect([beside.gpus, beside.cost, beside.energyKilowattHours]).toEqual([[], null, null])
    expect(beside.notes).toContain('This machine has no GPU: the SIMULATED ones are not part of the run.')
    expect((await buildReport({ ...own, path: folder })).summary.gpus.length).toBe(1)
  })

  it('as HTML holds the charts, the ledger, the findings and no way to the network', async () => {
    const page = (await buildReport(request(recording()))).html('0', T)
    expect(/<(?:img|link|iframe|object|embed)|<script[^>]+src|https?:\/\/|@import|url\(/.exec(page)).toBe(null)
    const { charts, marks, times } = dataOf(page)
    expect(charts.map(({ title }) => title)).toEqual([
      'Loss',
      'Learning rate',
      'Gradient norm',
      'Step time',
      'Throughput (samples per second)',
      'GPU utilization',
      'Tensor core activity',
      'GPU memory',
      'Where the memory of GPU 0 is',
      'Where the memory of GPU 1 is',
      'Temperature',
      'Power',
    ])
    expect(marks).toEqual([{ at: T + 90_000, severity: 'critical', detector: 'thermal', gpuIndex: 1, message: MEAN }])
    charts.forEach((_, position) => {
      expect(page.split(`<div data-chart="${position}"></div>`).length).toBe(2)
    })
    const loss = charts[0]?.series ?? []
    expect(loss.map(({ name }) => name)).toEqual(['rank 0', 'rank 1'])
    expect(Math.abs(times.firstAt + (loss[0]?.odd?.[0] ?? 0) * times.stepMs - (T + 300_000))).toBeLessThanOrEqual(times.stepMs)
    for (const { series } of charts) for (const { values } of series) expect(values.length).toBe(times.count)
    const ledger = charts.find(({ title }) => title.endsWith('GPU 1 is'))
    const parts = Object.fromEntries((ledger?.series ?? []).map(({ name, values }) => [name, values.find((value) => value !== null)]))
    expect(Object.keys(parts)).toEqual([
      'Tensors',
      'Pending free',
      'Fragmented',
      'Releasable cache',
      'Context and libraries',
      'Not attributed',
      'Driver reserve',
    ])
    expect(parts.Tensors).toBeCloseTo(40 * GIB, -6)
    expect(Object.values(parts).reduce<number>((sum, value) => sum + (value ?? 0), 0)).toBeCloseTo(62 * GIB, -7)
  })

  it('is one file: the built style, the data and the built script, none of which can end early', async () => {
    const page = (await buildReport(request(recording()))).html('0', T)
    const built = (name: string) => readFileSync(join(dirname(BIN), '../dist/web-report', name), 'utf8').trim()
    expect(() => new vm.Script(built('report.js'))).not.toThrow()
    expect(built('report.js')).not.toMatch(/<\/?script|<!--/i)
    expect(built('report.css')).not.toMatch(/<\/style/i)
    expect(page.split(`<style>${built('report.css')}</style>`).length).toBe(2)
    expect(page.endsWith(`<script>${built('report.js')}</script>\n</body>\n</html>\n`)).toBe(true)
    expect([page.match(/<script/g)?.length, page.match(/<\/script/g)?.length, page.match(/<!--/g)]).toEqual([2, 2, null])
    expect(built('report.js')).toContain('Leon Sorokin')
    expect(Buffer.byteLength(built('report.js') + built('report.css'))).toBeLessThan(82_000)
  })

  it('says times in UTC for readers without a script, which says them in their own zone', async () => {
    const page = (await buildReport(request(recording()))).html('0', T)
    expect(page).toContain(`<time data-from="${T + 90_000}" data-to="${T + 200_000}">2026-01-05 00:01:30 – 00:03:20 UTC</time>`)
    expect(page).toContain('<span id="zone">Times are UTC.</span>')
  })

  it('on the command line: text, JSON, a page; a folder, a run by name, a file of another tool', async () => {
    const dir = recording()
    const page = join(dir, 'r.html')
    const folder = await run(['report', dir, '--html', page, '--text', '--price-per-hour', '1.5'])
    expect([folder.code, folder.stderr]).toEqual([0, `gpuwarden: wrote ${page}\n`])
    expect(folder.stdout).toContain('2 × NVIDIA H200')
    expect(folder.stdout).toContain('$0.50 ($1.50 per GPU hour)')
    expect(readFileSync(page, 'utf8').startsWith('<!doctype html>')).toBe(true)
    const json = await run(['report', 'train.py', '--log-dir', dir, '--json'])
    const summary = JSON.parse(json.stdout) as Record<string, unknown>
    expect(summary).toMatchObject({
      title: 'train.py',
      runId: 'r1',
      outcome: 'oom',
      from: T + 60_000,
      to: T + 300_000,
      gpus: [{ id: 'GPU-1' }],
    })
    expect(summary.notes).not.toContainEqual(expect.stringContaining('Which GPUs'))
    // The run is called like the script, and that is where people are.
    const scripts = temporaryFolder()
    writeFileSync(join(scripts, 'train.py'), 'print(1)\n')
    const beside = spawnSync(process.execPath, [BIN, 'report', 'train.py', '--log-dir', dir, '--json'], { cwd: scripts, encoding: 'utf8' })
    expect([beside.status, JSON.parse(beside.stdout || '{}')]).toEqual([0, summary])
    const unknown = await run(['report', 'other.py', '--log-dir', dir])
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining('train.py (r1)')])
    const trace = join(temporaryFolder(), 'trace')
    cpSync(join(FIXTURES, 'traces/divergence'), trace, { recursive: true })
    expect((await run(['report', trace])).stdout).toMatch(/steps/)
  })
})

describe('the report of a run that ran out of memory, on an H200', () => {
  const folder = (change: (report: Record<string, unknown>) => void = () => undefined): string => {
    const dir = join(temporaryFolder(), 'logs')
    cpSync(join(FIXTURES, 'out-of-memory'), dir, { recursive: true })
    const file = join(dir, 'runs', 'd9d1d91b7e09196e.run.json')
    const record = JSON.parse(readFileSync(file, 'utf8')) as { report: Record<string, unknown> }
    change(record.report)
    writeFileSync(file, JSON.stringify(record))
    return dir
  }

  it('says why in text and JSON, of the run and of its folder', async () => {
    const dir = folder()
    const page = join(dir, 'r.html')
    const ofRun = await run(['report', 'train.py', '--log-dir', dir, '--text', '--html', page])
    expect(ofRun.stdout).toContain(`gpuwarden · train.py: ran out of GPU memory
  cause     fragmentation: 6.5 GiB lay unused in the allocator's cache, but in pieces too small for 32.0 MiB: try expandable_segments:True in PYTORCH_ALLOC_CONF
  where     /home/user/train.py:33 in leak, asked for 32 MiB
  memory    132.6 GiB tensors, 6.5 GiB fragmented, 29 MiB free
  duration  56 s
`)
    expect(ofRun.stdout).toMatch(/energy {4}1\.\d+ Wh/)
    expect(readFileSync(page, 'utf8')).toContain('<h2>Why memory ran out</h2>')
    const ofFolder = await run(['report', dir])
    expect(ofFolder.stdout).toContain('gpuwarden · logs\n  cause     fragmentation')
    expect(ofFolder.stdout).toContain('ran out of GPU memory: train.py (d9d1d91b7e09196e)')
    const { outOfMemory, energyKilowattHours } = JSON.parse((await run(['report', 'train.py', '--log-dir', dir, '--json'])).stdout)
    expect(energyKilowattHours).toBeCloseTo(0.0019, 4)
    expect(outOfMemory).toMatchObject({
      requestedBytes: 33_554_432,
      cause: { kind: 'fragmentation' },
      ledger: expect.arrayContaining([expect.objectContaining({ name: 'torch_allocated', bytes: 142_335_964_180 })]),
      holders: [],
      growth: null,
    })
  })

  it('shows it on the page before the GPUs, as text, with the rest folded', async () => {
    const dir = folder((report) => {
      report.holders = [{ file: '/home/<user>/a.py', line: 5, function: '<lambda>', bytes: 70 * GIB, blocks: 9 }]
      report.growth = { bytes: 48 * GIB, steps: 96, bytes_per_step: GIB / 2, seconds: 18 }
      report.allocator_settings = '</style><script>alert(1)</script>'
      report.cause = { kind: 'leak', message: '<img src=x>' }
    })
    const { runs } = await new RunFiles(join(dir, 'runs')).list()
    const built = await buildReport({ ...request(dir), run: runs[0] ?? null })
    const page = built.html('0', T)
    const section = /<section class="oom">.*?<\/section>/s.exec(page)?.[0] ?? ''
    expect(page.indexOf(section)).toBeLessThan(page.indexOf('<h2>GPUs</h2>'))
    expect(section).toContain('<b>A leak</b>')
    expect(section).toContain('by 48.0 GiB in 96 steps (512 MiB per step) and 18 s')
    expect(section).toContain('/<wbr>home/<wbr>user/<wbr>train.py:33')
    expect(section).toContain('&lt;lambda&gt;')
    expect(section.match(/<img|<script|<lambda|<user/)).toBe(null)
    const shares = [...section.matchAll(/flex-grow:([\d.]+)/g)].map((match) => Number(match[1]))
    expect(shares.length).toBe(6)
    expect(shares.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 4)
    expect(section.match(/<details>/g)?.length).toBe(3)
    expect(page.indexOf('OutOfMemoryError')).toBe(-1)
    expect(page.match(/CUDA out of memory/g)?.length).toBe(2)
  })

  it('does not take the process of a run for another one where it reports no figures', async () => {
    const dir = folder()
    const steps = join(dir, 'training_metrics_20261115_143710.jsonl')
    writeFileSync(steps, `${readFileSync(steps, 'utf8').split('\n').slice(0, 20).join('\n')}\n`)
    const page = (await buildReport({ ...request(dir), pidOf: () => 1458 })).html('0', T)
    const ledger = dataOf(page).charts.find(({ stacked }) => stacked)?.series ?? []
    expect(ledger.map(({ name }) => name)).toContain('Tensors')
    expect(ledger.map(({ name }) => name)).toContain('Not attributed')
    expect(ledger.map(({ name }) => name)).not.toContain('Other processes')
  })

  it('shows something else that was sent as it came, folded', async () => {
    const { runs } = await new RunFiles(join(recording(), 'runs')).list()
    const page = (await buildReport({ ...request(recording()), run: runs[0] ?? null })).html('0', T)
    expect(page).not.toContain('Why memory ran out')
    expect(page).toContain('<h2>Last report before the end</h2><details>')
    expect(page).toContain('<pre>CUDA out of memory</pre>')
  })
})

describe('the parts', () => {
  it('buckets keep extremes, sums and counts however long it goes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 10_000_000 }), fc.integer({ min: -100, max: 100 })), { minLength: 1 }),
        (points) => {
          const buckets = new TimeBuckets(T)
          const series = buckets.series()
          for (const [at, value] of points) buckets.add(series, buckets.indexOf(T + at), value)
          const values = points.map(([, value]) => value)
          expect(Math.min(...series.min)).toBe(Math.min(...values))
          expect(Math.max(...series.max)).toBe(Math.max(...values))
          expect(series.count.reduce((a, b) => a + b, 0)).toBe(points.length)
          expect(series.sum.reduce((a, b) => a + b, 0)).toBeCloseTo(
            values.reduce((a, b) => a + b, 0),
            6,
          )
          expect(buckets.used).toBeLessThanOrEqual(BUCKETS)
          for (const [at, value] of points) {
            const index = buckets.indexOf(T + at)
            expect((series.min[index] ?? Infinity) <= value && (series.max[index] ?? -Infinity) >= value).toBe(true)
          }
        },
      ),
    )
  })

  it('energy comes from power, over no longer silence than a minute, and from the counter', () => {
    const use = new GpuUse()
    const figures = { utilizationRatio: null, tensorActiveRatio: null, memoryUsedBytes: null, temperatureCelsius: null, energyJoules: null }
    for (const at of [0, 10_000, 200_000, 210_000]) use.accept(T + at, { ...figures, powerWatts: 100 })
    expect(use.summary()).toMatchObject({ energyJoules: 2000, meanPowerWatts: 100, meanUtilizationRatio: null })
    const counted = new GpuUse()
    for (const energyJoules of [500, 700, 10, 60]) counted.accept(T, { ...figures, powerWatts: null, energyJoules })
    expect(counted.summary().energyJoules).toBe(250)
  })

  it("a price is the given one, the list's, or not known", () => {
    expect(costOf([{ name: 'NVIDIA H100 80GB HBM3', hours: 2 }], null)).toMatchObject({ amount: 6, isEstimate: true })
    expect(costOf([{ name: 'NVIDIA H100 80GB HBM3', hours: 2 }], 1.25)).toEqual({ amount: 2.5, pricePerGpuHour: 1.25, isEstimate: false })
    expect(costOf([{ name: 'Voodoo 2', hours: 2 }], null)).toBe(null)
    expect([listPrice('NVIDIA H200'), listPrice('NVIDIA L40S'), listPrice('NVIDIA L4'), listPrice('Tesla T4')]).toEqual([
      3.8, 1.1, 0.7, 0.4,
    ])
  })
})
