import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, host, process, processInfo, run, START, step } from './inputs.fixture.ts'
import { leak } from './leak.ts'
import { findingsOf, MODES, traceOf } from './memory-traces.fixture.ts'

/** Calm for `calm` samples, then memory that grows by `rate` bytes a sample for `growing` samples, then the process ends. */
function growth({ calm = 200, growing = 400, rate = 0.1 * GIB, everyMs = 1000 } = {}): DetectorInput[] {
  const inputs: DetectorInput[] = [device()]
  for (let i = 0; i < calm + growing; i++) {
    const used = 20 * GIB + rate * Math.max(0, i - calm)
    inputs.push(gpu(START + i * everyMs, { memoryUsedBytes: used, processes: [process(1001, { memoryUsedBytes: used })] }))
  }
  const end = START + (calm + growing) * everyMs
  for (let i = 0; i < 20; i++) inputs.push(gpu(end + i * everyMs, { memoryUsedBytes: 0, processes: [] }))
  return inputs
}

detectorContract({ kind: leak, trouble: () => growth() })

describe('leak', () => {
  it('says how fast, since when and until when, and names the process', () => {
    const [first] = alarms(feed(leak.create(leak.defaults), growth()))
    expect(first?.message).toMatch(
      /^Process 1001 on GPU 0 leaks \d+ MiB per second: .* more in .*, and nothing is freed\. At this rate the GPU will be full in .*device only/,
    )
    expect(first?.subject).toMatchObject({ gpu: 'GPU-0', pid: 1001 })
    expect(Math.abs((first?.since ?? 0) - (START + 200_000))).toBeLessThan(30_000)
    expect(first?.evidence.bytesPerSecond).toBeGreaterThan(0.09 * GIB)
    expect(first?.evidence.bytesPerSecond).toBeLessThan(0.11 * GIB)
  })

  it('finds the same leak a hundred times slower', () => {
    expect(alarms(feed(leak.create(leak.defaults), growth({ everyMs: 100_000 }))).length).toBeGreaterThan(0)
  })

  it('is about the device when nobody is known to hold its memory', () => {
    const inputs = growth().map((input) =>
      input.type === 'gpu' ? { ...input, sample: { ...input.sample, processes: null }, processes: [] } : input,
    )
    expect(alarms(feed(leak.create(leak.defaults), inputs))[0]?.subject).toMatchObject({ gpu: 'GPU-0', pid: null })
  })

  it('names the one of two processes that grows', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 500; i++) {
      const grown = 10 * GIB + 0.1 * GIB * Math.max(0, i - 200)
      const processes = [process(7, { memoryUsedBytes: 20 * GIB }), process(8, { memoryUsedBytes: grown })]
      inputs.push(gpu(START + i * 1000, { memoryUsedBytes: 20 * GIB + grown, processes }))
    }
    const found = alarms(feed(leak.create(leak.defaults), inputs))
    expect(new Set(found.map((finding) => finding.subject.pid))).toEqual(new Set([8]))
  })

  it('finds a leak of host memory', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 600; i++) {
      const info = processInfo(1001, { residentBytes: 20 * GIB + 0.3 * GIB * Math.max(0, i - 200) })
      inputs.push(host(START + i * 1000, { processes: [info] }), gpu(START + i * 1000, {}, [info]))
    }
    const found = alarms(feed(leak.create(leak.defaults), inputs))
    expect(found[0]?.message).toMatch(/^Process 1001 \(python\) leaks .* per second of host memory: .* the host will be full in/)
    expect(found[0]?.subject).toMatchObject({ gpu: null, pid: 1001 })
  })

  it('follows the allocator of a run, in steps, and leaves the device alone', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 500; i++) {
      const at = START + i * 500
      const kept = 0.1 * GIB * Math.max(0, i - 200)
      inputs.push(gpu(at, { memoryUsedBytes: 21 * GIB + kept, processes: [process(1001, { memoryUsedBytes: 21 * GIB + kept })] }))
      inputs.push(
        step(at + 1, i, {
          memoryAllocatedBytes: 10 * GIB + kept,
          memoryPeakAllocatedBytes: 18 * GIB + kept,
          memoryPeakReservedBytes: null,
          memoryReservedBytes: 20 * GIB + kept,
        }),
      )
    }
    const found = alarms(feed(leak.create(leak.defaults), inputs))
    expect(new Set(found.map((finding) => finding.fingerprint))).toEqual(new Set(['leak|run=run-1|rank=0']))
    expect(found[0]?.message).toMatch(/^Run run-1( on GPU 0)? leaks 10[23] MiB per step: /)
  })

  it('finds a leak of twenty seconds in the allocator within a fifth of them, and takes longer from the device', () => {
    const late = (kind: 'allocator' | 'device') => {
      const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
      for (let i = 0; i < 800; i++) {
        const at = START + i * 100
        const kept = Math.min(60, 0.3 * Math.max(0, i - 600)) * GIB + (i % 7) * 0.01 * GIB
        inputs.push(gpu(at, { memoryUsedBytes: 20 * GIB + kept, processes: [process(1001, { memoryUsedBytes: 20 * GIB + kept })] }))
        const figures = {
          memoryAllocatedBytes: 18 * GIB + kept,
          memoryPeakAllocatedBytes: 19 * GIB + kept,
          memoryReservedBytes: 20 * GIB + kept,
        }
        if (kind === 'allocator') inputs.push(step(at + 1, i, figures))
      }
      const first = alarms(feed(leak.create(leak.defaults), inputs))[0]
      return ((first?.at ?? Number.POSITIVE_INFINITY) - START - 60_000) / 20_000
    }
    expect(late('allocator')).toBeGreaterThan(0)
    expect(late('allocator')).toBeLessThanOrEqual(0.2)
    expect(late('device')).toBeGreaterThanOrEqual(0.25)
  })

  it('does not take a filling cache for a leak when the run reports what it allocates', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 500; i++) {
      const cache = 0.1 * GIB * Math.max(0, i - 200)
      inputs.push(
        gpu(START + i * 500, { memoryUsedBytes: 21 * GIB + cache, processes: [process(1001, { memoryUsedBytes: 21 * GIB + cache })] }),
      )
      inputs.push(step(START + i * 500 + 1, i, { memoryReservedBytes: 20 * GIB + cache }))
    }
    expect(alarms(feed(leak.create(leak.defaults), inputs))).toEqual([])
  })

  it('starts anew when the total changes under it', () => {
    const inputs: DetectorInput[] = [device()]
    for (let i = 0; i < 400; i++)
      inputs.push(gpu(START + i * 1000, { memoryTotalBytes: i < 200 ? 80 * GIB : 20 * GIB, memoryUsedBytes: 10 * GIB }))
    expect(alarms(feed(leak.create(leak.defaults), inputs))).toEqual([])
  })
})

for (const mode of MODES)
  describe(`leak on recorded runs, ${mode}`, () => {
    for (const name of ['leak_graph', 'leak_sawtooth'])
      it(`finds ${name} within a quarter of the time to its end`, async () => {
        const trace = await traceOf(name, mode)
        const first = alarms(findingsOf(leak, trace.inputs))[0]
        expect(first?.at).toBeGreaterThan(trace.leakStart)
        expect(((first?.at ?? Number.POSITIVE_INFINITY) - trace.leakStart) / (trace.oom - trace.leakStart)).toBeLessThanOrEqual(0.25)
      })
    for (const name of [
      'benign_sawtooth',
      'divergence',
      'eval_spikes',
      'healthy',
      'intruder',
      'stall',
      ...(mode === 'GPU alone' ? [] : ['warmup_plateau', 'growing_batch']),
    ])
      it(`is silent on ${name}`, async () => expect(alarms(findingsOf(leak, (await traceOf(name, mode)).inputs))).toEqual([]))
  })

describe('leak of a run that has ended', () => {
  it('is not reported again for the device or its process, which are about to free it all', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 500; i++) {
      const used = 20 * GIB + 0.1 * GIB * Math.max(0, i - 200)
      const processes = [process(1001, { memoryUsedBytes: used }), process(66, { memoryUsedBytes: 2 * GIB })]
      inputs.push(
        gpu(START + i * 500, { memoryUsedBytes: used + 2 * GIB, processes }),
        step(START + i * 500 + 1, i, { memoryAllocatedBytes: used - 2 * GIB, memoryReservedBytes: used - GIB }),
      )
    }
    const last = inputs.findLast((input) => input.type === 'gpu')
    const sample = last?.type === 'gpu' ? last.sample : {}
    inputs.push(run({ pid: 1001, endedAt: START + 250_000 }))
    for (let i = 1; i < 20; i++) inputs.push(gpu(START + 250_000 + i * 500, { ...sample, at: START + 250_000 + i * 500 }))
    const found = alarms(feed(leak.create(leak.defaults), inputs))
    expect(new Set(found.map((finding) => finding.fingerprint))).toEqual(new Set(['leak|run=run-1|rank=0']))
  })
})

describe('leak with many processes', () => {
  it('still watches a stranger beside a run that reports its figures', () => {
    const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
    for (let i = 0; i < 500; i++) {
      const grown = 5 * GIB + 0.1 * GIB * Math.max(0, i - 200)
      const processes = [process(1001, { memoryUsedBytes: 40 * GIB }), process(66, { memoryUsedBytes: grown })]
      inputs.push(
        gpu(START + i * 500, { memoryUsedBytes: 40 * GIB + grown, processes }),
        step(START + i * 500 + 1, i, { memoryReservedBytes: 39 * GIB }),
      )
    }
    expect(new Set(alarms(feed(leak.create(leak.defaults), inputs)).map((finding) => finding.subject.pid))).toEqual(new Set([66]))
  })

  it('keeps few watches when many processes take turns being the largest', () => {
    const detector = leak.create(leak.defaults)
    detector.accept(device())
    for (let i = 0; i < 600; i++) {
      const processes = Array.from({ length: 30 }, (_, pid) => process(pid + 1, { memoryUsedBytes: (2 + ((pid * 7 + i) % 30) / 20) * GIB }))
      detector.accept(gpu(START + i * 1000, { memoryUsedBytes: 79 * GIB, processes }))
    }
    expect(JSON.stringify(detector.snapshot()).length).toBeLessThan(100_000)
  })
})

describe('leak of a run whose SDK recorded the line', () => {
  const line = {
    file: 'train.py',
    line: 77,
    function: 'remember',
    bytes: 2e9,
    blocks: 20,
    bytesPerStep: 102 * 2 ** 20,
    share: 0.98,
    rank: 0,
  }
  const leaking = (from: number, count: number): DetectorInput[] =>
    Array.from({ length: count }, (_, index) => {
      const kept = 0.1 * GIB * Math.max(0, from + index - 200)
      const memory = { memoryAllocatedBytes: 10 * GIB + kept, memoryPeakAllocatedBytes: 18 * GIB + kept }
      return step(START + (from + index) * 500, from + index, { ...memory, memoryReservedBytes: 20 * GIB + kept })
    })
  const until = 460

  it('names the line at once, keeps its beginning, and advises it', () => {
    const detector = leak.create(leak.defaults)
    const before = alarms(feed(detector, leaking(0, until)))
    const at = START + until * 500
    const [named, ...more] = alarms(feed(detector, [run({ leakLines: [{ ...line, at }] }), ...leaking(until, 3)]))
    expect(named?.message).toMatch(/^Run run-1( on GPU 0)? leaks 10[23] MiB per step from train\.py:77 in remember \(98% of the growth\): /)
    expect(named).toMatchObject({
      since: before.at(-1)?.since,
      fingerprint: before.at(-1)?.fingerprint,
      evidence: { line: 'train.py:77 in remember' },
    })
    expect(named?.advice.join()).toContain('Look at train.py:77')
    expect(more).toEqual([])
  })

  it('says nothing of a line from before the leak, or of another rank', () => {
    const detector = leak.create(leak.defaults)
    const old = run({
      leakLines: [
        { ...line, at: START - 1 },
        { ...line, at: START + 1e6, rank: 1 },
      ],
    })
    expect(alarms(feed(detector, [old, ...leaking(0, until)])).filter(({ message }) => message.includes('train.py'))).toEqual([])
  })

  it('knows the line after a restart', () => {
    const first = leak.create(leak.defaults)
    feed(first, [...leaking(0, until), run({ leakLines: [{ ...line, at: START + until * 500 }] })])
    const second = leak.create(leak.defaults)
    second.restore(JSON.parse(JSON.stringify(first.snapshot())))
    expect(alarms(feed(second, leaking(until, 1)))[0]?.message).toContain('train.py:77')
  })
})
