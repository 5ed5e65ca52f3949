/** What every detector must do, whatever it looks for. Each detector's test runs this suite with a trouble of its own. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Detector, DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { Finding } from '../core/model.ts'
import { alarms, device, GIB, gpu, health, host, process, processInfo, run, START, silentGpu, step, timeOf } from './inputs.fixture.ts'

export interface DetectorSubject<Options> {
  readonly kind: DetectorKind<Options>
  /** The kind's defaults when omitted. */
  readonly options?: Options
  /** Input in which the trouble begins and comes to its end. */
  trouble(): readonly DetectorInput[]
}

export function feed(detector: Detector, inputs: readonly DetectorInput[]): Finding[] {
  return inputs.flatMap((input) => [...detector.accept(input)])
}

/** An hour of a healthy GPU and a healthy run, nothing ever changing. */
export function constantSeries(samples = 600, stepMs = 6000): DetectorInput[] {
  const inputs: DetectorInput[] = [device(), run({ pid: 1001 }), health(START)]
  for (let index = 0; index < samples; index++) {
    const at = START + index * stepMs
    const info = processInfo(1001)
    if (index % 5 === 0) inputs.push(host(at, { processes: [info] }))
    inputs.push(gpu(at, {}, [info]), step(at + 1, index, { stepSeconds: stepMs / 1000 }))
  }
  return inputs
}

/** After the trouble: every process gone, every run ended, every source well; two hours of it. */
function aftermath(inputs: readonly DetectorInput[]): DetectorInput[] {
  const gpus = new Set<string>()
  const runs = new Set<string>()
  const sources = new Set<string>()
  let last = START
  for (const input of inputs) {
    if (input.type === 'gpu') gpus.add(input.sample.gpu)
    if (input.type === 'event' && input.event.gpu !== null) gpus.add(input.event.gpu)
    if (input.type === 'step') runs.add(input.step.run)
    if (input.type === 'health') sources.add(input.health.source)
    last = Math.max(last, timeOf(input) ?? 0)
  }
  if (gpus.size === 0) gpus.add('GPU-0')
  const after: DetectorInput[] = []
  for (const id of runs) after.push(run({ id, endedAt: last + 1000, outcome: 'success' }))
  for (const source of sources) after.push(health(last + 1000, { source }))
  for (let index = 1; index <= 720; index++)
    for (const id of gpus) {
      const at = last + index * 10_000
      after.push(host(at))
      after.push(
        gpu(at, { gpu: id, utilizationRatio: 0, memoryUsedBytes: 0, memoryFreeBytes: 80 * GIB, temperatureCelsius: 35, processes: [] }),
      )
    }
  return after
}

function shifted(input: DetectorInput, byMs: number): DetectorInput {
  switch (input.type) {
    case 'gpu':
      return { ...input, sample: { ...input.sample, at: input.sample.at + byMs } }
    case 'host':
      return { ...input, sample: { ...input.sample, at: input.sample.at + byMs } }
    case 'step':
      return { ...input, step: { ...input.step, at: input.step.at + byMs } }
    case 'event':
      return { ...input, event: { ...input.event, at: input.event.at + byMs } }
    case 'health':
      return { ...input, at: input.at + byMs }
    default:
      return input
  }
}

/** The same constant series as different machines would deliver it. */
const DELIVERIES: Readonly<Record<string, () => DetectorInput[]>> = {
  'as it comes': () => constantSeries(),
  'ten times a second': () => constantSeries(900, 100),
  'once a minute': () => constantSeries(300, 60_000),
  'one sample': () => constantSeries(1),
  'with gaps': () => constantSeries().filter((_, index) => index < 3 || (index * 7919) % 13 > 4),
  'every item twice': () => constantSeries().flatMap((input) => [input, input]),
  'steps in late batches': () => {
    const inputs = constantSeries(300, 1000)
    const late: DetectorInput[] = []
    const held: DetectorInput[] = []
    for (const input of inputs) {
      if (input.type === 'step') held.push(input)
      else late.push(input)
      if (held.length === 5) late.push(...held.splice(0))
    }
    return late
  },
  'neighbors swapped': () => {
    const inputs = constantSeries()
    for (let index = 3; index + 1 < inputs.length; index += 2) {
      const [first, second] = [inputs[index], inputs[index + 1]]
      if (first && second) inputs.splice(index, 2, second, first)
    }
    return inputs
  },
  'clock set back an hour in the middle': () => constantSeries().map((input, index) => (index > 700 ? shifted(input, -3_600_000) : input)),
  'clock set forward an hour in the middle': () =>
    constantSeries().map((input, index) => (index > 700 ? shifted(input, 3_600_000) : input)),
  'readings that the card cannot give': () =>
    constantSeries().map((input) =>
      input.type === 'gpu' ? silentGpu(input.sample.at) : input.type === 'step' ? blindStep(input.step.at, input.step.step) : input,
    ),
  'no process list': () => constantSeries().map((input) => (input.type === 'gpu' ? gpu(input.sample.at, { processes: null }) : input)),
}

function blindStep(at: number, number: number): DetectorInput {
  return step(at, number, {
    loss: null,
    learningRate: null,
    gradientNorm: null,
    throughputPerSecond: null,
    stepSeconds: null,
    memoryAllocatedBytes: null,
    memoryReservedBytes: null,
    memoryActiveBytes: null,
    memoryInactiveSplitBytes: null,
    memoryPeakAllocatedBytes: null,
    memoryPeakReservedBytes: null,
    allocRetries: null,
    oomCount: null,
  })
}

export function detectorContract<Options>(subject: DetectorSubject<Options>): void {
  const { kind } = subject
  const create = () => kind.create(subject.options ?? kind.defaults)
  const trouble = subject.trouble()
  const uninterrupted = feed(create(), trouble)

  describe(`detector contract: ${kind.name}`, () => {
    it('finds its problem, and reports its end', () => {
      expect(uninterrupted.some((finding) => finding.state === 'active')).toBe(true)
      const open = new Set<string>()
      for (const finding of uninterrupted)
        if (finding.state === 'active') open.add(finding.fingerprint)
        else open.delete(finding.fingerprint)
      expect([...open]).toEqual([])
    })

    it('says it in full: whose, since when, with numbers, surviving JSON', () => {
      for (const finding of uninterrupted) {
        expect(finding.detector).toBe(kind.name)
        expect(finding.fingerprint.startsWith(kind.name)).toBe(true)
        expect(finding.message.length).toBeGreaterThan(10)
        expect(finding.message).not.toMatch(/undefined|NaN %|\[object/)
        expect(finding.since).toBeLessThanOrEqual(finding.at)
        expect(finding.confidence).toBeGreaterThanOrEqual(0)
        expect(finding.confidence).toBeLessThanOrEqual(1)
        if (finding.state === 'active') expect(Object.keys(finding.evidence).length).toBeGreaterThan(0)
        expect(JSON.parse(JSON.stringify(finding))).toEqual(finding)
      }
    })

    it('declares itself: what it says, how severe, and what it has to be shown for that', () => {
      expect(kind.about).toMatch(/^[A-Z].{20,160}\.$/)
      expect(new Set(kind.severities).size).toBe(kind.severities.length)
      for (const finding of uninterrupted) expect(kind.severities).toContain(finding.severity)
      const shown = trouble.filter((input) => kind.inputs.includes(input.type))
      expect(feed(create(), shown)).toEqual(uninterrupted)
    })

    it('gives the same findings for the same input', () => {
      expect(feed(create(), trouble)).toEqual(uninterrupted)
    })

    it('updates sparingly', () => {
      expect(uninterrupted.length).toBeLessThanOrEqual(3 + trouble.length / 5)
    })

    it('goes on after a restart as if there had been none', () => {
      for (let part = 1; part <= 12; part++) {
        const cut = Math.floor((trouble.length * part) / 13)
        const before = create()
        const findings = feed(before, trouble.slice(0, cut))
        const after = create()
        after.restore(JSON.parse(JSON.stringify(before.snapshot())))
        expect([...findings, ...feed(after, trouble.slice(cut))], `cut at ${cut} of ${trouble.length}`).toEqual(uninterrupted)
      }
    })

    it('keeps a snapshot as it was taken', () => {
      const detector = create()
      feed(detector, trouble.slice(0, Math.floor(trouble.length / 2)))
      const snapshot = detector.snapshot()
      const text = JSON.stringify(snapshot)
      feed(detector, trouble.slice(Math.floor(trouble.length / 2)))
      expect(JSON.stringify(snapshot)).toBe(text)
    })

    it('starts from nothing: an empty snapshot restores', () => {
      const detector = create()
      detector.restore(JSON.parse(JSON.stringify(create().snapshot())))
      expect(feed(detector, trouble)).toEqual(uninterrupted)
    })

    for (const [delivery, inputs] of Object.entries(DELIVERIES))
      it(`is silent on a constant series: ${delivery}`, () => {
        expect(alarms(feed(create(), inputs()))).toEqual([])
      })

    it('ends what it began when process, run and fault are gone', () => {
      const detector = create()
      const open = new Map<string, Finding>()
      const note = (findings: readonly Finding[]) => {
        for (const finding of findings)
          if (finding.state === 'active') open.set(finding.fingerprint, finding)
          else open.delete(finding.fingerprint)
      }
      const seen: DetectorInput[] = []
      for (const input of trouble) {
        seen.push(input)
        note(detector.accept(input))
        if (open.size > 0) break
      }
      expect(open.size).toBeGreaterThan(0)
      note(feed(detector, aftermath(seen)))
      expect([...open.keys()]).toEqual([])
    })

    it('survives its input torn apart: dropped, doubled, swapped, shifted', () => {
      const damage = fc.array(
        fc.record({ at: fc.nat(), what: fc.constantFrom('drop', 'double', 'swap', 'shift'), ms: fc.integer({ min: -1e7, max: 1e7 }) }),
        {
          maxLength: 40,
        },
      )
      fc.assert(
        fc.property(damage, (wounds) => {
          const inputs = [...trouble]
          for (const { at, what, ms } of wounds) {
            const index = inputs.length === 0 ? 0 : at % inputs.length
            const input = inputs[index]
            if (!input) continue
            if (what === 'drop') inputs.splice(index, 1)
            else if (what === 'double') inputs.splice(index, 0, input)
            else if (what === 'shift') inputs.splice(index, 1, shifted(input, ms))
            else inputs.push(...inputs.splice(index, 1))
          }
          for (const finding of feed(create(), inputs))
            if (!(finding.since <= finding.at)) throw new Error(`since ${finding.since} is after ${finding.at}`)
        }),
        { numRuns: trouble.length > 5000 ? 5 : 30 },
      )
    })

    it('keeps little: ten thousand processes and a thousand runs in an hour', () => {
      const detector = kind.create(subject.options ?? kind.defaults, 32)
      detector.accept(device())
      let number = 0
      for (let second = 0; second < 3600; second += 4) {
        const at = START + second * 1000
        const processes = Array.from({ length: 12 }, () => process(2000 + number++, { memoryUsedBytes: 2 * GIB, smRatio: 0.1 }))
        const infos = processes.map((one, index) =>
          processInfo(one.pid, { user: `user-${number + index}`, executable: `/opt/${number + index}/bin/python` }),
        )
        detector.accept(host(at, { processes: infos }))
        detector.accept(gpu(at, { processes }, infos))
        for (let index = 0; index < 3; index++) detector.accept(step(at + index, index, { run: `run-${second}`, loss: index, rank: index }))
      }
      expect(number).toBeGreaterThan(10_000)
      expect(JSON.stringify(detector.snapshot()).length).toBeLessThan(100_000)
    })
  })
}
