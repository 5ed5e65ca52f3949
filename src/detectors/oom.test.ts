import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { Finding, Run } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, run, START, step, timeOf } from './inputs.fixture.ts'
import { findingsOf, MODES, RUNS, traceOf } from './memory-traces.fixture.ts'
import { oom } from './oom.ts'

/** Memory that climbs until there is little left, then the process ends. */
function climb(everyMs = 1000, samples = 540): DetectorInput[] {
  const inputs: DetectorInput[] = [device()]
  for (let i = 0; i < samples; i++) {
    const used = 20 * GIB + 0.1 * GIB * Math.max(0, i - 100)
    inputs.push(gpu(START + i * everyMs, { memoryUsedBytes: used, processes: [process(1001, { memoryUsedBytes: used })] }))
  }
  for (let i = 0; i < 20; i++) inputs.push(gpu(START + (samples + i) * everyMs, { memoryUsedBytes: 0, processes: [] }))
  return inputs
}

detectorContract({ kind: oom, trouble: () => climb() })

describe('oom', () => {
  it('gives a time with its interval, and the risk that goes with it', () => {
    const found = feed(oom.create(oom.defaults), climb())
    const full = START + 700_000
    const loud = alarms(found)
    expect(loud.length).toBeGreaterThan(0)
    for (const finding of loud) {
      expect(finding.predictedEarliestAt).toBeLessThanOrEqual(full)
      expect(finding.predictedLatestAt).toBeGreaterThanOrEqual(full)
      expect(finding.riskLevel).toBe('high')
      expect(finding.message).toMatch(
        /^GPU 0 will run out of memory (in|within) .*: \d+% of .* is in use, growing .* per minute\. Seen from the device only/,
      )
    }
    expect(found.at(-1)?.state).toBe('resolved')
  })

  it('has no end farther off than its horizon, and goes from low to high as it comes nearer', () => {
    const found = feed(oom.create(oom.defaults), climb(120_000, 698)).filter((finding) => finding.state === 'active')
    const risks = [...new Set(found.map((finding) => finding.riskLevel))]
    expect(risks.slice(0, 3)).toEqual(['low', 'medium', 'high'])
    expect(risks).toContain('critical')
  })

  it('follows what the allocator needs, not what it keeps', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 600; i++) {
      const kept = Math.min(58, 0.2 * i) * GIB
      inputs.push(
        gpu(START + i * 500, { memoryUsedBytes: 21 * GIB + kept, processes: [process(1001, { memoryUsedBytes: 21 * GIB + kept })] }),
      )
      inputs.push(step(START + i * 500 + 1, i, { memoryReservedBytes: 20 * GIB + kept }))
    }
    expect(feed(oom.create(oom.defaults), inputs)).toEqual([])
  })

  it('names the line that was recorded to leak, at once', () => {
    const climbing = (from: number, count: number): DetectorInput[] =>
      Array.from({ length: count }, (_, index) => {
        const at = START + (from + index) * 500
        const kept = 0.1 * GIB * Math.max(0, from + index - 100)
        const processes = [process(1001, { memoryUsedBytes: 21 * GIB + kept })]
        const memory = { memoryAllocatedBytes: 10 * GIB + kept, memoryPeakAllocatedBytes: 18 * GIB + kept }
        return [
          gpu(at, { memoryUsedBytes: 21 * GIB + kept, processes }),
          step(at + 1, from + index, { ...memory, memoryReservedBytes: 20 * GIB + kept }),
        ]
      }).flat()
    const detector = oom.create(oom.defaults)
    const before = feed(detector, [device(), run({ pid: 1001, gpus: ['GPU-0'] }), ...climbing(0, 400)])
    expect(before.at(-1)).toMatchObject({ state: 'active', subject: { run: 'run-1' } })
    const figures = { bytes: 2e9, blocks: 20, bytesPerStep: 102 * 2 ** 20, share: 0.98 }
    const line = { file: 'train.py', line: 77, function: 'remember', ...figures, rank: 0, at: START + 200_000 }
    const [named] = feed(detector, [run({ pid: 1001, gpus: ['GPU-0'], leakLines: [line] }), ...climbing(400, 1)])
    expect(named?.message).toContain(' Leak: 102 MiB per step from train.py:77 in remember (98% of the growth).')
    expect(named).toMatchObject({ since: before.at(-1)?.since, advice: [expect.any(String), expect.stringContaining('train.py:77')] })
  })

  it('came true when memory was full at last, though it was not when the forecast was made', () => {
    const inputs: DetectorInput[] = [device()]
    const held = (at: number, used: number) => gpu(at, { memoryUsedBytes: used, processes: [process(1001, { memoryUsedBytes: used })] })
    for (let i = 0; i < 700; i++) inputs.push(held(START + i * 1000, Math.min(79 * GIB, 20 * GIB + 0.1 * GIB * Math.max(0, i - 100))))
    const found = feed(oom.create(oom.defaults), [...inputs, gpu(START + 700_000, { memoryUsedBytes: 0, processes: [] })])
    expect(found.at(-2)?.evidence.levelRatio).toBeLessThan(0.95)
    expect(found.at(-1)).toMatchObject({ state: 'resolved', evidence: { outcome: 'came_true' } })
  })

  it('forecasts the moment at which a run reaches the limit that it set', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 300; i++) {
      const allocated = 10 * GIB + 0.05 * GIB * Math.max(0, i - 60)
      inputs.push(gpu(START + i * 1000, { memoryUsedBytes: allocated + GIB, processes: [process(1001, { memoryUsedBytes: allocated })] }))
      inputs.push(
        step(START + i * 1000 + 1, i, {
          ...{ memoryAllocatedBytes: allocated, memoryPeakAllocatedBytes: allocated, memoryReservedBytes: allocated },
          memoryLimitBytes: 24 * GIB,
        }),
      )
    }
    const found = alarms(feed(oom.create(oom.defaults), inputs))
    // 14 GiB at 50 MiB a second, from second 60 on.
    const full = START + (60 + 14 / 0.05) * 1000
    expect(Math.abs((found.at(-1)?.predictedAt ?? 0) - full)).toBeLessThan(15_000)
    expect(found.at(-1)?.message).toContain('of 24.0 GiB')
  })

  describe('of a run that leaked until it ended', () => {
    const told = async (end: Partial<Run>) => {
      const { inputs, oom: endedAt } = await traceOf('leak_with_end', 'with training figures', RUNS)
      const at = inputs.findIndex((input) => (timeOf(input) ?? 0) > endedAt)
      return findingsOf(oom, [run({ pid: 1458 }), ...inputs.slice(0, at), run({ pid: 1458, endedAt, ...end }), ...inputs.slice(at)])
    }

    it('reports one forecast, the allocator\u2019s, and no second one of the device once it has ended', async () => {
      const found = await told({ outcome: 'oom' })
      expect([...new Set(found.map((finding) => finding.fingerprint))]).toEqual(['oom|run=run-1|rank=0'])
      expect(found.map((finding) => finding.severity)).toContain('critical')
      const end = found.at(-1)
      expect(end).toMatchObject({ state: 'resolved', evidence: { outcome: 'came_true' } })
      expect(end?.message).toMatch(/^Came true at \d\d:\d\d:\d\d, (as forecast|[\d.]+ (ms|s) (later|earlier) than forecast)\.$/)
      expect(Math.abs(Number(end?.evidence.error_seconds))).toBeLessThan(10)
    })

    it('holds a forecast that comes true while memory is full and rises no more', () => {
      const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
      const allocated = (index: number) => Math.min(78.5, 10 + 0.7 * Math.max(0, index - 60)) * GIB
      for (let i = 0; i < 175; i++) {
        const bytes = allocated(i)
        inputs.push(step(START + i * 400, i, { memoryAllocatedBytes: bytes, memoryReservedBytes: bytes, memoryPeakAllocatedBytes: bytes }))
      }
      const end = feed(oom.create(oom.defaults), [...inputs, run({ pid: 1001, endedAt: START + 175 * 400, outcome: 'oom' })]).at(-1)
      expect(end).toMatchObject({ state: 'resolved', evidence: { outcome: 'came_true' } })
    })

    it('claims nothing when the run ended for another reason', async () => {
      const end = (await told({ outcome: 'failed' })).at(-1)
      expect(end).toMatchObject({ state: 'resolved', message: 'The run ended before it could happen.', evidence: { outcome: 'unknown' } })
    })
  })

  it('forecasts nothing for a GPU whose memory was just given back, though its process was never seen', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 400; i++) {
      const used = 10 * GIB + 0.12 * GIB * i
      inputs.push(gpu(START + i * 1000, { memoryUsedBytes: used, processes: null }))
      if (i % 2 === 0) inputs.push(step(START + i * 1000 + 1, i, { memoryAllocatedBytes: used - 2 * GIB, memoryReservedBytes: used - GIB }))
    }
    const freed = Array.from({ length: 120 }, (_, i) => gpu(START + (400 + i) * 1000, { memoryUsedBytes: 0, processes: null }))
    const found = feed(oom.create(oom.defaults), [...inputs, ...freed])
    expect(found.filter((finding) => finding.state === 'active' && finding.subject.gpu !== null)).toEqual([])
    expect(alarms(found).length).toBeGreaterThan(0)
  })

  it('reports the device when what fills it is not the run', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 300; i++) {
      const foreign = 2 * GIB + 0.2 * GIB * i
      const processes = [process(1001, { memoryUsedBytes: 16 * GIB }), process(2002, { memoryUsedBytes: foreign })]
      inputs.push(gpu(START + i * 1000, { memoryUsedBytes: 16 * GIB + foreign, processes }), step(START + i * 1000 + 1, i))
    }
    expect(alarms(feed(oom.create(oom.defaults), inputs)).map((finding) => finding.subject.gpu)).toContain('GPU-0')
  })

  it('knows that a cache which was flushed when full will be flushed again', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 1200; i++) inputs.push(gpu(START + i * 100, { memoryUsedBytes: (20 + (i % 200) * 0.298) * GIB }))
    const found = alarms(feed(oom.create(oom.defaults), inputs))
    expect(found.filter((finding) => finding.at > START + 25_000)).toEqual([])
    expect(found.every((finding) => finding.severity === 'warning')).toBe(true)
  })
})

/** Share of the time from the first high risk to the end in which what was said last holds the truth. */
function coverage(findings: readonly Finding[], from: number, to: number): number {
  let good = 0
  let all = 0
  for (let at = from; at < to; at += 100) {
    const said = findings.findLast((finding) => finding.at <= at)
    all++
    if (said?.state === 'active' && (said.predictedEarliestAt ?? to + 1) <= to && (said.predictedLatestAt ?? 0) >= to) good++
  }
  return good / all
}

for (const mode of MODES)
  describe(`oom on recorded runs, ${mode}`, () => {
    for (const [name, lead] of [
      ['leak_graph', 20],
      ['leak_sawtooth', 10],
    ] as const)
      it(`warns of the end of ${name} ${lead} s ahead, and its interval holds it`, async () => {
        const trace = await traceOf(name, mode)
        const findings = findingsOf(oom, trace.inputs)
        const first = findings.find((finding) => finding.riskLevel === 'high' || finding.riskLevel === 'critical')
        expect(first?.at).toBeLessThanOrEqual(trace.oom - lead * 1000)
        expect(coverage(findings, first?.at ?? 0, trace.oom)).toBeGreaterThanOrEqual(0.85)
      })
    for (const name of ['benign_sawtooth', 'divergence', 'eval_spikes', 'healthy', 'intruder', 'stall', 'warmup_plateau'])
      it(`is quiet on ${name}`, async () => {
        const found = alarms(findingsOf(oom, (await traceOf(name, mode)).inputs))
        // From the device alone a cache that fills the card cannot be told from a coming end: a warning, never more.
        if (name === 'warmup_plateau' && mode === 'GPU alone') expect(found.every((finding) => finding.severity === 'warning')).toBe(true)
        else expect(found).toEqual([])
      })
  })
