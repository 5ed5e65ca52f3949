import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { growthText, ledgerBySize, ledgerLabel, ledgerTotal, type OomReport, ownPlace, placeText, readOomReport } from './oom-report.ts'

const GIB = 1024 ** 3

const said = {
  kind: 'oom',
  at: 1_794_753_480_822,
  rank: 0,
  pid: 1458,
  message: 'CUDA out of memory.',
  requested_bytes: 33_554_432,
  allocator: { peak_allocated: 5, retries: 1 },
  allocator_settings: 'expandable_segments:True',
  stack: [
    { file: '/home/user/train.py', line: 77, function: 'main' },
    { file: '/home/user/train.py', line: 33, function: 'leak' },
    { file: '/home/user/venv/lib/python3.12/site-packages/torch/nn/modules/module.py', line: 1779, function: '_call_impl' },
  ],
  ledger: [
    { name: 'torch_pending_free', bytes: 0, explanation: 'Nothing.' },
    { name: 'torch_inactive_split', bytes: 7 * GIB, explanation: 'Pieces.' },
    { name: 'torch_allocated', bytes: 132 * GIB, explanation: 'Tensors.' },
    { name: 'free', bytes: 0, explanation: 'Free.' },
  ],
  cause: { kind: 'leak', message: 'it grew' },
  holders: [
    { file: '/home/user/train.py', line: 1, function: 'a', bytes: 5, blocks: 2 },
    { file: '/home/user/train.py', line: 2, function: 'b', bytes: 9, blocks: null },
  ],
  growth: { bytes: 48 * GIB, steps: 96, bytes_per_step: 520 * 1024 ** 2, seconds: 18.3 },
  snapshot: { path: '/tmp/s.pickle', reason: null, bytes: 12, complete: true },
}

function read(value: unknown): OomReport {
  const report = readOomReport(value)
  if (report === null) throw new Error('no report')
  return report
}

describe('a report of memory that ran out', () => {
  it('is read whole', () => {
    const report = read(said)
    expect(report).toMatchObject({
      requestedBytes: 33_554_432,
      cause: { kind: 'leak', message: 'it grew' },
      growth: { bytes: 48 * GIB, bytesPerStep: 520 * 1024 ** 2 },
      allocatorSettings: 'expandable_segments:True',
      allocatorRetries: 1,
      peakAllocatedBytes: 5,
      snapshot: { path: '/tmp/s.pickle', isComplete: true },
    })
    expect(report.holders.map(({ line }) => line)).toEqual([2, 1])
    expect(ledgerBySize(report).map(({ name }) => name)).toEqual(['torch_allocated', 'torch_inactive_split', 'free'])
    expect(ledgerTotal(report)).toBe(139 * GIB)
    expect(growthText(report.growth ?? { bytes: 0, steps: null, bytesPerStep: null, seconds: null })).toBe(
      'by 48.0 GiB in 96 steps (520 MiB per step) and 18 s',
    )
  })

  it.each([
    null,
    'oom',
    [[]],
    {},
    { kind: 'nan', message: 'x' },
    { kind: 'oom' },
    { ledger: { torch: 5 }, message: '  ' },
    { kind: 'oom', at: 1, gpus: ['0'] },
  ])('is none where nothing is said: %j', (value) => {
    expect(readOomReport(value)).toBe(null)
  })

  it('leaves out what does not fit, and keeps the rest', () => {
    const report = read({
      cause: { kind: 'gremlins', message: 'they did it' },
      at: 1e300,
      requested_bytes: '5',
      ledger: [{ name: 'free', bytes: -1 }, { name: 5, bytes: 5 }, null, { name: 'new_part', bytes: 5 }],
      holders: [{ file: 'a.py' }, { file: 'b.py', bytes: 5 }],
      stack: 'deep',
      growth: { bytes: 'much' },
      snapshot: { path: 7 },
    })
    expect(report).toMatchObject({ at: null, requestedBytes: null, stack: [], growth: null, snapshot: null })
    expect(report.cause).toEqual({ kind: 'unknown', message: 'they did it' })
    expect(report.ledger).toEqual([{ name: 'new_part', bytes: 5, explanation: null }])
    expect(report.holders).toEqual([{ file: 'b.py', line: null, function: null, bytes: 5, blocks: null }])
    expect(ledgerLabel('new_part')).toBe('new part')
    expect(ledgerLabel('constructor')).toBe('constructor')
    expect(read({ cause: { kind: 'toString', message: 'x' } }).cause?.kind).toBe('unknown')
  })

  it('never fails, whatever comes', () => {
    const keys = [...Object.keys(said), ...Object.keys({ ...said.snapshot, ...said.growth, ...said.holders[0], ...said.cause })]
    const anything = fc.anything({ key: fc.constantFrom(...keys), maxDepth: 4, withNullPrototype: true })
    const some = fc.record(Object.fromEntries(Object.keys(said).map((key) => [key, anything])), { requiredKeys: [] })
    fc.assert(
      fc.property(fc.oneof(anything, some, fc.json().map(JSON.parse)), (value) => {
        const report = readOomReport(value)
        if (report === null) return
        for (const { bytes } of [...report.ledger, ...report.holders]) expect(bytes).toBeGreaterThanOrEqual(0)
        if (report.at !== null) expect(() => new Date(report.at ?? 0).toISOString()).not.toThrow()
        expect(ledgerBySize(report).length).toBeLessThanOrEqual(32)
        const place = ownPlace(report)
        if (place) expect(placeText(place)).toContain(place.file)
        if (report.growth) expect(growthText(report.growth)).toMatch(/^by \d/)
      }),
    )
  })

  it("names the place in the person's own code", () => {
    const at = (...files: string[]) => ownPlace(read({ stack: files.map((file, line) => ({ file, line, function: 'f' })) }))?.file
    expect(placeText(ownPlace(read(said)) ?? { file: '', line: null, function: null })).toBe('/home/user/train.py:33 in leak')
    expect(at('a.py', '/usr/lib/python3/dist-packages/torch/x.py')).toBe('a.py')
    expect(at('/usr/lib/python3.12/runpy.py', '/home/u/lib/train.py', '/usr/lib/python3.12/threading.py')).toBe('/home/u/lib/train.py')
    expect(at('C:\\train.py', 'C:\\Python312\\Lib\\threading.py', 'C:\\v\\Lib\\site-packages\\torch\\x.py')).toBe('C:\\train.py')
    expect(at('<ipython-input-3>', '<frozen importlib._bootstrap>')).toBe('<ipython-input-3>')
    expect(at('/v/site-packages/axolotl/cli.py', '/v/site-packages/torch/x.py')).toBe('/v/site-packages/torch/x.py')
    expect(ownPlace(read({ message: 'x' }))).toBe(null)
    expect(placeText({ file: 'a.py', line: null, function: null })).toBe('a.py')
  })

  it('writes small sizes as they are', () => {
    expect(growthText({ bytes: 4096, steps: null, bytesPerStep: null, seconds: 2 })).toBe('by 4.0 KiB in 2 s')
  })
})
