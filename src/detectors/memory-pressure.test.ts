import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, run, START, step } from './inputs.fixture.ts'
import { memoryPressure } from './memory-pressure.ts'
import { findingsOf, MODES, traceOf } from './memory-traces.fixture.ts'

/** A run whose allocator fails every 20 steps for a while and then no more. */
function retries(peak = 50 * GIB): DetectorInput[] {
  const inputs: DetectorInput[] = [device(), run({ pid: 1001 })]
  for (let i = 0; i < 400; i++) {
    inputs.push(gpu(START + i * 500, { memoryUsedBytes: 61 * GIB, processes: [process(1001, { memoryUsedBytes: 61 * GIB })] }))
    inputs.push(
      step(START + i * 500 + 1, i, {
        allocRetries: Math.floor(Math.min(200, i) / 20),
        memoryPeakAllocatedBytes: peak,
        memoryPeakReservedBytes: null,
        memoryReservedBytes: 60 * GIB,
      }),
    )
  }
  return inputs
}

detectorContract({ kind: memoryPressure, trouble: () => retries() })

describe('memory pressure', () => {
  it('counts failures of the allocator and says what the run needs', () => {
    const found = alarms(feed(memoryPressure.create(memoryPressure.defaults), retries()))
    expect(found[0]?.message).toMatch(/cudaMalloc failed 3 times in 1 min .* needs 63% of 79.0 GiB/)
    expect(found[0]?.subject.run).toBe('run-1')
  })

  it('takes failures of a run that needs little for a cache that is flushed', () => {
    expect(alarms(feed(memoryPressure.create(memoryPressure.defaults), retries(8 * GIB)))).toEqual([])
  })

  it('takes an out-of-memory error for what it is', () => {
    const inputs = [
      device(),
      ...Array.from({ length: 30 }, (_, i) => step(START + i * 1000, i, { allocRetries: 0, oomCount: i < 20 ? 0 : 1 })),
    ]
    expect(alarms(feed(memoryPressure.create(memoryPressure.defaults), inputs))[0]?.severity).toBe('critical')
  })

  it('goes by the limit that the run set, not by the size of the GPU', () => {
    const limited = (limit: number | null, reserved: number) =>
      Array.from({ length: 900 }, (_, i) => [
        gpu(START + i * 1000, { memoryUsedBytes: 25 * GIB, processes: [process(1001)] }),
        step(START + i * 1000 + 1, i, { allocRetries: 0, memoryReservedBytes: reserved, memoryLimitBytes: limit }),
      ]).flat()
    const said = (inputs: DetectorInput[]) =>
      feed(memoryPressure.create(memoryPressure.defaults), [device(), run({ pid: 1001 }), ...inputs])
    expect(said(limited(null, 23 * GIB))).toEqual([])
    expect(said(limited(24 * GIB, 12 * GIB))).toEqual([])
    expect(said(limited(24 * GIB, 23 * GIB))[0]?.message).toMatch(
      /^GPU 0: 96% of 24\.0 GiB, the limit that its run set, has been in use for 10 min; 1\.0 GiB left\.$/,
    )
    const failing = retries(20 * GIB).map((input) =>
      input.type === 'step' ? { ...input, step: { ...input.step, memoryLimitBytes: 24 * GIB } } : input,
    )
    expect(alarms(feed(memoryPressure.create(memoryPressure.defaults), failing))[0]?.message).toMatch(/needs 83% of 24\.0 GiB/)
  })

  it('is not shaken by a counter that starts anew', () => {
    const inputs = [device(), ...Array.from({ length: 60 }, (_, i) => step(START + i * 1000, i, { allocRetries: i < 30 ? 50 : 0 }))]
    expect(feed(memoryPressure.create(memoryPressure.defaults), inputs)).toEqual([])
  })

  it('mentions memory that is nearly full for long, warns when hardly anything is left, and says when there is room', () => {
    const level = (ratio: number) => {
      const inputs = Array.from({ length: 900 }, (_, i) => gpu(START + i * 1000, { memoryUsedBytes: (i < 800 ? ratio : 0.2) * 80 * GIB }))
      return feed(memoryPressure.create(memoryPressure.defaults), inputs).map((finding) => `${finding.state} ${finding.severity}`)
    }
    expect(level(0.7)).toEqual([])
    expect(level(0.85)).toEqual(['active info', 'resolved info'])
    expect(level(0.97)).toEqual(['active warning', 'resolved warning'])
  })
})

describe('the level of memory', () => {
  const said = (used: readonly number[], options: Partial<typeof memoryPressure.defaults>) => {
    const inputs = used.map((ratio, i) => gpu(START + i * 10_000, { memoryUsedBytes: ratio * 80 * GIB }))
    return feed(memoryPressure.create({ ...memoryPressure.defaults, ...options }), inputs).map(({ state, at }) => [
      state,
      (at - START) / 1000,
    ])
  }

  it('may be another one, held for a shorter time, and left further below', () => {
    const used = [0.4, 0.6, 0.6, 0.6, 0.45, 0.45, 0.35]
    expect(said(used, { levelRatio: 0.5, holdMinutes: 1 / 6, levelGapRatio: 0.1 })).toEqual([
      ['active', 20],
      ['resolved', 60],
    ])
    expect(said(used, { levelRatio: 0.5, holdMinutes: 1 / 6 })).toEqual([
      ['active', 20],
      ['resolved', 40],
    ])
    expect(said(used, {})).toEqual([])
  })
})

for (const mode of MODES)
  describe(`memory pressure on recorded runs, ${mode}`, () => {
    it('finds growing_batch', async () => {
      expect(alarms(findingsOf(memoryPressure, (await traceOf('growing_batch', mode)).inputs)).length).toBeGreaterThan(0)
    })
    for (const name of ['benign_sawtooth', 'divergence', 'eval_spikes', 'healthy', 'intruder', 'stall', 'warmup_plateau'])
      it(`is silent on ${name}`, async () => expect(alarms(findingsOf(memoryPressure, (await traceOf(name, mode)).inputs))).toEqual([]))
  })
