import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type OomReport, readOomReport } from '../core/memory/oom-report.ts'
import { GpuUse } from './training-gpu-use.ts'
import { type Summary, type SummaryInput, summarize } from './training-summary.ts'
import { betterLoss, energyText, gpuTimeFigure, gpuTimeText, summaryText } from './training-text.ts'

/** Of an H200 that ran out of memory. */
const RECORD = JSON.parse(
  readFileSync(new URL('../../fixtures/out-of-memory/runs/d9d1d91b7e09196e.run.json', import.meta.url), 'utf8'),
) as { readonly message: string; readonly report: Readonly<Record<string, unknown>> }

const HELD = {
  cause: { kind: 'capacity', message: 'tensors took 132.6 GiB' },
  growth: { bytes: 141_000_000_000, steps: 260, bytes_per_step: 545_259_520, seconds: 52.1 },
  holders: [
    { file: '/home/user/train.py', line: 33, function: 'leak', bytes: 137_438_953_472, blocks: 262 },
    { file: '/home/user/model.py', line: 8, function: 'forward', bytes: 3_000_000_000, blocks: 1 },
    { file: '/home/user/\u001b[31mred.py', line: 4, function: 'load', bytes: 5_000_000, blocks: null },
    { file: '/home/user/fourth.py', line: 5, function: 'load', bytes: 4_000_000, blocks: 2 },
  ],
  snapshot: { path: '/home/user/oom.pickle', reason: null },
  rank: 3,
}

function summaryOf(outOfMemory: OomReport | null, more: Partial<SummaryInput> = {}): Summary {
  const use = new GpuUse()
  const figures = { utilizationRatio: 0.5, tensorActiveRatio: null, memoryUsedBytes: 2 ** 37, temperatureCelsius: 43, energyJoules: null }
  for (const at of [0, 28_100, 56_200]) use.accept(at, { ...figures, powerWatts: 124 })
  const gpu = { id: 'GPU-1', label: '0', name: 'NVIDIA H200', memoryTotalBytes: 2 ** 37, use: use.summary(), peakProcessBytes: null }
  const input: SummaryInput = {
    title: 'train.py',
    runId: 'r',
    outcome: 'oom',
    message: RECORD.message,
    outOfMemory,
    leaks: [],
    hyperparameters: {},
    layers: null,
    runs: [],
    isOfAllGpus: false,
    from: 0,
    to: 56_200,
    gpus: [gpu],
    training: null,
    findings: [],
    notes: [],
    ...more,
  }
  return summarize(input, null)
}

describe('the summary of a run that ran out of memory', () => {
  it('says why, where and what held it', () => {
    expect(summaryText(summaryOf(readOomReport(RECORD.report)))).toBe(
      `gpuwarden · train.py: ran out of GPU memory
  cause     fragmentation: 6.5 GiB lay unused in the allocator's cache, but in pieces too small for 32.0 MiB: try expandable_segments:True in PYTORCH_ALLOC_CONF
  where     /home/user/train.py:33 in leak, asked for 32 MiB
  memory    132.6 GiB tensors, 6.5 GiB fragmented, 29 MiB free
  duration  56 s
  GPU time  56.2 GPU seconds on 1 × NVIDIA H200
  energy    1.936 Wh
  cost      about $0.06 ($3.80 per GPU hour, a list price; see --price-per-hour)
  GPU 0     memory peak 128.0 GiB of 128.0 GiB, mean 128.0 GiB, utilization 50%, 124 W, up to 43 °C
  findings  none`,
    )
  })

  it('names the line that was recorded to leak while the run went on', () => {
    const line = { file: 'train.py', line: 77, function: 'remember', bytes: 1e9, blocks: 20, bytesPerStep: 161 * 2 ** 20, share: 0.98 }
    const leaks = [
      { ...line, rank: 0, at: 0 },
      { ...line, rank: 3, at: 0, share: null },
    ]
    const text = summaryText(summaryOf(null, { leaks }))
    expect(text).toContain('\n  leak      161 MiB per step from train.py:77 in remember (98% of the growth)\n')
    expect(text).toContain('\n  leak      161 MiB per step from train.py:77 in remember, rank 3\n')
  })

  it('names the three lines that held most, how it grew, and the snapshot', () => {
    const text = summaryText(summaryOf(readOomReport({ ...RECORD.report, ...HELD })))
    expect(text.split('\n').slice(1, 9)).toEqual([
      '  cause     the GPU is too small: tensors took 132.6 GiB',
      '  where     /home/user/train.py:33 in leak, asked for 32 MiB, rank 3',
      '  memory    132.6 GiB tensors, 6.5 GiB fragmented, 29 MiB free',
      '  held by   128.0 GiB  /home/user/train.py:33 in leak (262 blocks)',
      '              2.8 GiB  /home/user/model.py:8 in forward (1 block)',
      '              4.8 MiB  /home/user/·[31mred.py:4 in load',
      '  growth    by 131.3 GiB in 260 steps (520 MiB per step) and 52 s',
      '  snapshot  /home/user/oom.pickle (gpuwarden snapshot shows it)',
    ])
    const ways_out = [
      { what: 'free what is kept at', line: 'train.py:33 in leak', bytes: 2 ** 37, is_bound: false, is_enough: true },
      { what: 'expandable segments', line: null, bytes: 2 ** 20, is_bound: true, is_enough: false },
      { what: 4, bytes: 'much' },
    ]
    const analyzed = summaryText(summaryOf(readOomReport({ ...RECORD.report, ...HELD, snapshot: { ...HELD.snapshot, ways_out } })))
    expect(analyzed.split('\n').slice(8, 11)).toEqual([
      '  ways out  128.0 GiB: free what is kept at train.py:33 in leak',
      '            up to 1.0 MiB, not enough alone: expandable segments',
      '  snapshot  /home/user/oom.pickle (gpuwarden snapshot shows it)',
    ])
    const leak = { ...RECORD.report, ...HELD, cause: { kind: 'leak', message: 'tensors grew by 520.0 MiB a step' } }
    expect(summaryText(summaryOf(readOomReport(leak)))).not.toContain('  growth')
  })

  it("keeps PyTorch's message where nobody knows the cause, or it ended otherwise", () => {
    const unknown = readOomReport({ ...RECORD.report, cause: { kind: 'unknown', message: 'figures are not known' } })
    const [head, cause] = summaryText(summaryOf(unknown)).split('\n')
    expect(head).toContain('(OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB.')
    expect(cause).toBe('  cause     unknown: figures are not known')
    expect(summaryText(summaryOf(null)).split('\n')[0]).toContain('(OutOfMemoryError')
    const later = summaryText(summaryOf(readOomReport(RECORD.report), { outcome: 'failed', message: 'KeyError: 5' }))
    expect(later.split('\n').slice(0, 2)).toEqual([
      'gpuwarden · train.py: failed (KeyError: 5)',
      expect.stringMatching(/^ {2}cause {5}fragmentation/),
    ])
  })

  it('says in a summary of many runs which one it was', () => {
    const runs = [
      { id: 'a', name: 'other.py', from: 0, to: 5, outcome: 'success' },
      { id: 'd9d1d91b7e09196e', name: 'train.py', from: 5, to: 9, outcome: 'oom' },
      { id: 'c', name: 'third.py', from: 9, to: null, outcome: null },
    ]
    const text = summaryText(summaryOf(readOomReport(RECORD.report), { title: 'logs', outcome: null, message: null, runs }))
    expect(text).toContain('asked for 32 MiB, run train.py\n')
    expect(text).toContain(
      `  runs      3
            succeeded: other.py (a)
            ran out of GPU memory: train.py (d9d1d91b7e09196e)
            has not ended: third.py (c)
`,
    )
  })
})

describe('figures', () => {
  it('of energy are watt hours where kilowatt hours have no digits', () => {
    expect([0, 9.62e-4, 0.0123, 0.0999, 0.1, 12.34].map(energyText)).toEqual([
      '0 Wh',
      '0.962 Wh',
      '12.3 Wh',
      '99.9 Wh',
      '0.1 kWh',
      '12.34 kWh',
    ])
  })

  it('of GPU time are in the unit that people would use', () => {
    expect([0.002, 0.5, 12.5].map(gpuTimeText)).toEqual(['7.2 GPU seconds', '30 GPU minutes', '12.5 GPU hours'])
    expect([0.002, 0.5, 12.5].map(gpuTimeFigure)).toEqual(['7.2 s', '30 min', '12.5 h'])
  })

  it('do not say the same twice', () => {
    expect([betterLoss(8.636e-5, 8.637e-5), betterLoss(1, 0.5), betterLoss(null, 0.5), betterLoss(1, null)]).toEqual([
      null,
      '0.5',
      '0.5',
      null,
    ])
  })
})
