import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ledgerTotal, readOomReport } from '../../core/memory/oom-report.ts'
import type { GpuEvent, GpuSample, HostSample, Sample, TrainingStep } from '../../core/model.ts'
import type { Source, SourceOptions } from '../../core/source-contract.ts'
import { readTicks, sourceContract, sourceEnv } from '../source.contract.ts'
import { DEMO_SCENARIOS, demo } from './index.ts'

const START = 1_760_000_000_000
/** The kernel's largest PID. */
const PID_MAX = 4_194_304

async function opened(options: SourceOptions = {}): Promise<Source> {
  const source = await demo.open(sourceEnv({ options }))
  if (source === null) throw new Error('the demo is always there')
  return source
}

/** One tick a second, for so many seconds. */
async function play(options: SourceOptions, seconds: number): Promise<Sample[][]> {
  return readTicks(await opened(options), seconds + 1, START)
}

const gpuAt = (ticks: readonly Sample[][], second: number, gpu = 0): GpuSample => {
  const found = ticks[second]?.filter((sample): sample is GpuSample => sample.kind === 'gpu')[gpu]
  if (found === undefined) throw new Error(`no GPU ${gpu} at second ${second}`)
  return found
}
const hostAt = (ticks: readonly Sample[][], second: number): HostSample => {
  const found = ticks[second]?.find((sample): sample is HostSample => sample.kind === 'host')
  if (found === undefined) throw new Error(`no host at second ${second}`)
  return found
}
const runs = (ticks: readonly Sample[][], gpu = 0) =>
  ticks
    .flat()
    .flatMap((sample) => (sample.kind === 'run' ? [sample] : []))
    .filter(({ run }) => run.gpus.includes(`GPU-SIM-000${gpu}`))
const steps = (ticks: readonly Sample[][], gpu = 0) => {
  const ids = new Set(runs(ticks, gpu).map(({ run }) => run.id))
  return ticks.flat().filter((sample): sample is TrainingStep => sample.kind === 'step' && ids.has(sample.run))
}
const events = (ticks: readonly Sample[][]) => ticks.flat().filter((sample): sample is GpuEvent => sample.kind === 'event')
const share = (sample: GpuSample) => (sample.memoryUsedBytes ?? 0) / (sample.memoryTotalBytes ?? 1)

for (const scenario of DEMO_SCENARIOS)
  sourceContract(`demo ${scenario}`, {
    kind: demo,
    present: () => sourceEnv({ options: { demoScenario: scenario } }),
    gpus: { story: 8, all: 6, straggler: 4 }[scenario as string] ?? 2,
  })
sourceContract('demo with 64 GPUs', { kind: demo, present: () => sourceEnv({ options: { demoScenario: 'all', demoGpus: 64 } }), gpus: 64 })

describe('what can be ordered', () => {
  it.each([
    [{ demoScenario: 'meltdown' }, /demoScenario must be one of story, idle, healthy, .*, all; got "meltdown"/],
    [{ demoGpus: 0 }, /demoGpus must be a whole number from 1 to 64; got 0/],
    [{ demoGpus: 65 }, /demoGpus must be .*; got 65/],
    [{ demoGpus: 1.5 }, /demoGpus must be .*; got 1.5/],
    [{ seed: Number.NaN }, /seed must be a whole number; got NaN/],
  ])('refuses %j', async (options, message) => {
    await expect(opened(options)).rejects.toThrow(message)
  })

  it('is marked as simulated everywhere', async () => {
    const source = await opened({ demoGpus: 64 })
    expect(source.provenance).toBe('simulated')
    for (const device of source.devices()) {
      expect(device).toMatchObject({ provenance: 'simulated', vendor: 'nvidia', name: expect.stringMatching(/^Simulated /) })
      expect(device.id).toMatch(/^GPU-SIM-\d{4}$/)
    }
  })

  it('uses no PID that a real process could have', async () => {
    for (const scenario of DEMO_SCENARIOS) {
      const ticks = await play({ demoScenario: scenario }, 30)
      for (const sample of ticks.flat())
        if (sample.kind === 'gpu' || sample.kind === 'host')
          for (const process of sample.processes ?? []) expect(process.pid).toBeGreaterThan(PID_MAX)
    }
  })
})

describe('the same seed and moment give the same samples', () => {
  const options = { demoScenario: 'story', demoGpus: 9, seed: 3 }
  const moments = fc.uniqueArray(fc.integer({ min: 0, max: 130_000 }), { minLength: 1, maxLength: 25 })

  it('whatever was asked before', async () => {
    await fc.assert(
      fc.asyncProperty(moments, fc.integer({ min: 0, max: 130_000 }), async (unsorted, end) => {
        const early = unsorted.filter((ms) => ms < end).toSorted((a, b) => a - b)
        const [direct, wandering] = [await opened(options), await opened(options)]
        const read = (source: Source, ms: number) => source.read({ at: START + ms, monotonicMs: ms, tick: 0 })
        const direct0 = await read(direct, 0)
        const wandering0 = await read(wandering, 0)
        expect(wandering0).toEqual(direct0)
        const seen: Sample[] = []
        for (const ms of early) seen.push(...(await read(wandering, ms)))
        const last = await read(wandering, end)
        const levels = (samples: readonly Sample[]) => samples.filter((sample) => sample.kind === 'gpu' || sample.kind === 'host')
        const happened = (samples: readonly Sample[]) =>
          samples.filter((sample) => sample.kind === 'step' || sample.kind === 'event' || sample.kind === 'run')
        const all = await read(direct, end)
        expect(levels(last)).toEqual(levels(all))
        // Older steps are not made up for after a pause of more than a minute.
        const recent = happened([...seen, ...last]).filter((sample) => sample.at > START + end - 60_000)
        const key = (sample: Sample) => `${sample.at} ${JSON.stringify(sample)}`
        expect(recent.map(key).sort()).toEqual(
          happened(all)
            .filter((sample) => sample.at > START + end - 60_000)
            .map(key)
            .sort(),
        )
      }),
      { numRuns: 15 },
    )
  })

  it('and another seed gives others', async () => {
    expect(await play({ seed: 1 }, 20)).toEqual(await play({ seed: 1 }, 20))
    expect(await play({ seed: 1 }, 20)).not.toEqual(await play({ seed: 2 }, 20))
  })
})

describe('healthy', async () => {
  const ticks = await play({}, 400)

  it('warms up in stairs, then keeps its memory flat but for evaluations', () => {
    const shares = ticks.map((_, second) => share(gpuAt(ticks, second)))
    expect(shares[0]).toBe(0)
    const stairs = new Set(shares.slice(3, 22)).size
    expect(stairs).toBeGreaterThanOrEqual(5)
    expect(new Set(shares.slice(30)).size).toBe(2)
    expect(steps(ticks).at(-1)?.memoryAllocatedBytes).toBe(steps(ticks)[60]?.memoryAllocatedBytes)
  })

  it('has busy steps, evaluations with resting tensor cores, and checkpoints without load', () => {
    const samples = ticks.slice(30).map((_, second) => gpuAt(ticks, second + 30))
    const busy = samples.filter((sample) => (sample.utilizationRatio ?? 0) > 0.8)
    expect(busy.length / samples.length).toBeGreaterThan(0.85)
    const level = Math.min(...samples.map(share))
    const evaluating = samples.filter((sample) => share(sample) > level)
    expect(evaluating.length).toBeGreaterThan(10)
    for (const sample of evaluating) expect(sample.tensorActiveRatio).toBeLessThan(0.3)
    expect(samples.filter((sample) => (sample.utilizationRatio ?? 1) < 0.1).length).toBeGreaterThan(5)
  })

  it('warms with inertia, draws power with its load, and counts its energy up', () => {
    for (let second = 1; second < ticks.length; second++) {
      const [before, now] = [gpuAt(ticks, second - 1), gpuAt(ticks, second)]
      expect(Math.abs((now.temperatureCelsius ?? 0) - (before.temperatureCelsius ?? 0))).toBeLessThanOrEqual(4)
      expect(now.energyJoules ?? 0).toBeGreaterThan(before.energyJoules ?? 0)
      expect(now.clockEventReasons === 0 || now.clockEventReasons === 1).toBe(true)
    }
    const joules = (gpuAt(ticks, 400).energyJoules ?? 0) - (gpuAt(ticks, 100).energyJoules ?? 0)
    expect(joules / 300).toBeGreaterThan(450)
    expect(joules / 300).toBeLessThan(700)
    expect(gpuAt(ticks, 2).powerWatts).toBeLessThan(100)
    expect(gpuAt(ticks, 60).temperatureCelsius).toBeGreaterThan((gpuAt(ticks, 2).temperatureCelsius ?? 0) + 20)
  })

  it('trains: steps without a gap in their numbers, a falling loss, warm-up and cosine', () => {
    const own = steps(ticks)
    expect(own.map((step) => step.step)).toEqual(own.map((_, index) => index + 1))
    const mean = (from: number) => own.slice(from, from + 50).reduce((sum, step) => sum + (step.loss ?? 0), 0) / 50
    expect(mean(own.length - 50)).toBeLessThan(mean(0) * 0.8)
    expect(own[10]?.learningRate ?? 0).toBeLessThan((own[99]?.learningRate ?? 0) / 5)
    expect(own.at(-1)?.learningRate ?? 0).toBeLessThan(own[99]?.learningRate ?? 0)
    // No pause that could be taken for a stall of ten steps and more.
    const gaps = own.slice(1).map((step, index) => step.at - (own[index]?.at ?? 0))
    expect(Math.max(...gaps)).toBeLessThan(9000)
  })

  it('names the owner of every process, the same from tick to tick', () => {
    const pid = gpuAt(ticks, 60).processes?.[0]?.pid
    const at = (second: number) => hostAt(ticks, second).processes.find((process) => process.pid === pid)
    expect(at(60)).toMatchObject({
      user: 'alice',
      command: ['python', 'train.py', '--config', 'configs/llama-1b.yaml'],
      startedAt: START + 3000,
    })
    expect(at(300)?.startedAt).toBe(at(60)?.startedAt)
  })
})

describe('problems', () => {
  it('leak: grows steadily from the tenth second, in the allocator too, and ends out of memory after two minutes', async () => {
    const ticks = await play({ demoScenario: 'leak' }, 160)
    expect(share(gpuAt(ticks, 60))).toBeGreaterThan(share(gpuAt(ticks, 9)) + 0.03)
    const allocated = steps(ticks)
      .filter((step) => step.at > START + 12_000 && step.run === runs(ticks)[0]?.run.id)
      .map((step) => step.memoryAllocatedBytes ?? 0)
    expect(allocated.every((bytes, index) => index === 0 || bytes > (allocated[index - 1] ?? 0))).toBe(true)
    expect(share(gpuAt(ticks, 128))).toBeGreaterThan(0.95)
    expect(share(gpuAt(ticks, 135))).toBe(0)
    expect(gpuAt(ticks, 150).processes?.[0]?.pid).not.toBe(gpuAt(ticks, 125).processes?.[0]?.pid)
    expect(new Set(ticks.map((_, second) => share(gpuAt(ticks, second, 1)))).size).toBe(2)
  })

  it('oom: fills the memory in ninety seconds, retries, dies and comes back as another process', async () => {
    const ticks = await play({ demoScenario: 'oom' }, 130)
    expect(share(gpuAt(ticks, 89))).toBeGreaterThan(0.97)
    expect(gpuAt(ticks, 93).processes).toEqual([])
    expect(gpuAt(ticks, 105).processes?.[0]?.pid).not.toBe(gpuAt(ticks, 80).processes?.[0]?.pid)
    expect(Math.max(...steps(ticks).map((step) => step.allocRetries ?? 0))).toBeGreaterThan(3)
    expect(new Set(steps(ticks).map((step) => step.run)).size).toBe(2)
  })

  it('intruder: somebody else joins a GPU in use, and training slows down', async () => {
    const ticks = await play({ demoScenario: 'intruder' }, 60)
    expect(gpuAt(ticks, 19).processes?.length).toBe(1)
    expect(gpuAt(ticks, 21).processes?.length).toBe(2)
    const pid = gpuAt(ticks, 30).processes?.[1]?.pid
    expect(hostAt(ticks, 30).processes.find((process) => process.pid === pid)).toMatchObject({
      user: 'mallory',
      executable: '/tmp/.cache/worker',
    })
    expect(share(gpuAt(ticks, 30))).toBeGreaterThan(share(gpuAt(ticks, 15)) + 0.1)
    const pace = (from: number, to: number) =>
      steps(ticks).filter((step) => step.at > START + from * 1000 && step.at <= START + to * 1000).length
    expect(pace(28, 38)).toBeLessThan(pace(8, 18) * 0.85)
    expect(steps(ticks).at(-1)?.throughputPerSecond ?? 0).toBeLessThan((steps(ticks)[0]?.throughputPerSecond ?? 0) * 0.9)
  })

  it('overheat: climbs to where it slows down, says why, and gets slower', async () => {
    const ticks = await play({ demoScenario: 'overheat' }, 150)
    const [info] = (await opened({ demoScenario: 'overheat' })).devices()
    const slowdown = info?.temperatureSlowdownCelsius ?? 0
    expect(gpuAt(ticks, 20).temperatureCelsius).toBeLessThan(slowdown - 10)
    expect(gpuAt(ticks, 20).clockEventReasons).toBe(0)
    const hot = ticks.slice(0, 61).map((_, second) => gpuAt(ticks, second))
    expect(Math.max(...hot.map((sample) => sample.temperatureCelsius ?? 0))).toBeGreaterThanOrEqual(slowdown)
    const throttled = hot.filter((sample) => ((sample.clockEventReasons ?? 0) & 0x60) === 0x60)
    expect(throttled.length).toBeGreaterThan(8)
    expect(Math.min(...throttled.map((sample) => sample.smClockHertz ?? 0))).toBeLessThan(1.5e9)
    expect(gpuAt(ticks, 60).thermalViolationSeconds).toBeGreaterThan(5)
    const all = ticks.map((_, second) => gpuAt(ticks, second).temperatureCelsius ?? 0)
    expect(Math.max(...all)).toBeLessThan(info?.temperatureShutdownCelsius ?? 0)
  })

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('overheat shows whatever job the seed chose (seed %i)', async (seed) => {
    const ticks = await play({ demoScenario: 'overheat', demoGpus: 6, seed }, 75)
    expect((gpuAt(ticks, 75).thermalViolationSeconds ?? 0) > 5).toBe(true)
  })

  it('stall: nothing runs, no step ends, the memory stays held', async () => {
    const ticks = await play({ demoScenario: 'stall' }, 60)
    expect(gpuAt(ticks, 24).utilizationRatio).toBeGreaterThan(0.5)
    for (const second of [26, 40, 60])
      expect(gpuAt(ticks, second)).toMatchObject({ utilizationRatio: 0, memoryUsedBytes: gpuAt(ticks, 20).memoryUsedBytes })
    expect(steps(ticks).at(-1)?.at).toBeLessThanOrEqual(START + 25_000)
    expect(steps(ticks).length).toBeGreaterThan(30)
    expect(steps(ticks, 1).at(-1)?.at).toBeGreaterThan(START + 50_000)
  })

  it('lost: one XID 79, no reading any more, and the others go on', async () => {
    const ticks = await play({ demoScenario: 'lost' }, 60)
    expect(events(ticks)).toMatchObject([{ event: 'xid', code: 79, gpu: 'GPU-SIM-0001', at: START + 25_000 }])
    expect(gpuAt(ticks, 24, 1).state).toBe('ok')
    for (const second of [25, 60])
      expect(gpuAt(ticks, second, 1)).toMatchObject({
        state: 'lost',
        utilizationRatio: null,
        memoryUsedBytes: null,
        energyJoules: null,
        slowAt: null,
        processes: null,
      })
    expect(gpuAt(ticks, 60, 0).utilizationRatio).toBeGreaterThan(0.5)
    const alone = await play({ demoScenario: 'lost', demoGpus: 1 }, 26)
    expect(gpuAt(alone, 26).state).toBe('lost')
  })

  it('straggler: one rank works longer, and the others wait for it', async () => {
    const ticks = await play({ demoScenario: 'straggler' }, 60)
    const [announced] = runs(ticks)
    expect(announced?.run).toMatchObject({ worldSize: 4, gpus: [0, 1, 2, 3].map((gpu) => `GPU-SIM-000${gpu}`) })
    const at = (second: number) => new Map(steps(ticks.slice(0, second)).map((step) => [step.rank, step]))
    const worked = (step: TrainingStep | undefined) => (step?.stepSeconds ?? 0) - (step?.phaseSeconds?.sync ?? 0)
    const [before, slow] = [at(24), at(60)]
    expect([...before.keys()].sort()).toEqual([0, 1, 2, 3])
    expect(worked(before.get(2)) / worked(before.get(0))).toBeCloseTo(1, 1)
    expect(worked(slow.get(2)) / worked(slow.get(0))).toBeGreaterThan(1.4)
    expect(new Set([...slow.values()].map(({ step }) => step)).size).toBe(1)
    expect(gpuAt(ticks, 60, 2).smClockHertz).toBeLessThan((gpuAt(ticks, 60, 0).smClockHertz ?? 0) * 0.75)
  })

  it('all: every problem on a separate GPU', async () => {
    const ticks = await play({ demoScenario: 'all' }, 60)
    expect(ticks[60]?.filter((sample) => sample.kind === 'gpu').length).toBe(6)
    expect(share(gpuAt(ticks, 60, 0))).toBeGreaterThan(share(gpuAt(ticks, 9, 0)) + 0.03)
    expect(share(gpuAt(ticks, 60, 1))).toBeGreaterThan(share(gpuAt(ticks, 0, 1)) + 0.2)
    expect(gpuAt(ticks, 60, 2).processes?.length).toBe(2)
    expect((gpuAt(ticks, 60, 3).clockEventReasons ?? 0) & 0x40).toBe(0x40)
    expect(gpuAt(ticks, 60, 4).utilizationRatio).toBe(0)
    expect(gpuAt(ticks, 60, 5).state).toBe('lost')
  })
})

describe('runs', () => {
  it('are announced before their first step, and end after their last, as what they are', async () => {
    const ticks = await play({ demoScenario: 'story' }, 130)
    const [begun, died] = runs(ticks)
    expect(begun?.run).toMatchObject({ provenance: 'simulated', endedAt: null, startedAt: START - 56_000, host: 'simulated', worldSize: 1 })
    expect(begun?.about).toMatchObject({ command: expect.stringContaining('python'), framework: expect.any(String), report: null })
    expect(died?.run).toMatchObject({
      ...begun?.run,
      endedAt: START + 90_000,
      outcome: 'oom',
      ending: { cause: 'a leak', isPresumed: false },
    })
    const own = steps(ticks)
    expect(own[0]?.at).toBeGreaterThan(begun?.at ?? 0)
    expect(own.at(-1)?.at).toBeLessThan(died?.run.endedAt ?? 0)
    expect(own.at(-1)?.step).toBeLessThan(died?.run.totalSteps ?? 0)
    expect(runs(ticks, 1).map(({ run }) => run.endedAt)).toEqual([null])
  })

  it('leave a report of the memory they ran out of, whose parts add up to the card', async () => {
    const died = runs(await play({ demoScenario: 'leak' }, 131))[1]
    const report = readOomReport(died?.about.report)
    expect(report).toMatchObject({ cause: { kind: 'leak' }, run: died?.run.id, pid: died?.run.pid })
    expect(report && ledgerTotal(report)).toBe(gpuAt(await play({ demoScenario: 'leak' }, 1), 1).memoryTotalBytes)
    expect(died?.run.ending?.place).toContain(report?.holders[0]?.file ?? 'nowhere')
  })

  it('that end well have done all the steps they planned, and the next one is another run', async () => {
    const ticks = await play({ demoScenario: 'healthy', seed: 4 }, 3000)
    const ended = runs(ticks).filter(({ run }) => run.endedAt !== null)
    expect(ended.length).toBeGreaterThan(0)
    for (const { run } of ended) {
      expect(run.outcome).toBe('success')
      expect(Math.max(...steps(ticks).map((step) => (step.run === run.id ? step.step : 0)))).toBe(run.totalSteps)
    }
    expect(new Set(runs(ticks).map(({ run }) => run.id)).size).toBe(ended.length + 1)
  })

  it('have other ids at the next start', async () => {
    const ids = async (start: number) =>
      (await readTicks(await opened({}), 1, start)).flat().flatMap((sample) => (sample.kind === 'run' ? [sample.run.id] : []))
    expect(await ids(START)).toEqual(await ids(START))
    expect(await ids(START + 60_000)).not.toEqual(await ids(START))
  })
})
