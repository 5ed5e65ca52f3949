import { describe, expect, it } from 'vitest'
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { Finding, GpuInfo, GpuSample } from '../core/model.ts'
import type { DetectorFailure } from './detector-failure.ts'
import { createEngine } from './engine.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { detectors } from './index.ts'
import { device, event, GPU, gpu, health, host, PRETEND_DETECTOR, process, run, START, step } from './inputs.fixture.ts'

function tick(at: number, overrides: Partial<GpuSample>[] = [{}], more: Partial<Tick> = {}): HubEvent {
  const inputs = overrides.map((one) => gpu(at, one)).filter((input) => input.type === 'gpu')
  return {
    type: 'tick',
    tick: {
      seq: at,
      at,
      source: 'nvidia',
      provenance: 'live',
      gpus: inputs.map((input) => input.sample),
      processes: inputs.flatMap((input) => input.processes),
      host: null,
      events: [],
      ...more,
    },
  }
}
const info = (id: string, index: number): GpuInfo => {
  const input = device({ id, index, label: String(index), provenance: 'live' })
  if (input.type !== 'device') throw new Error('expected a device')
  return input.device
}

/** Finds every GPU that is hotter than `limit`. */
const hot: DetectorKind<{ limit: number }> = {
  ...PRETEND_DETECTOR,
  name: 'hot',
  defaults: { limit: 80 },
  create({ limit }) {
    const book = new FindingBook('hot')
    return {
      accept(input) {
        if (input.type !== 'gpu') return NO_FINDINGS
        const subject = subjectOf({ gpu: input.sample.gpu })
        const celsius = input.sample.temperatureCelsius ?? 0
        if (celsius <= limit) return book.resolve(book.key(subject), input.sample.at)
        return book.raise(subject, input.sample.at, {
          severity: 'warning',
          message: `${celsius} °C`,
          evidence: { celsius },
          confidence: 1,
          advice: [],
        })
      },
      snapshot: () => book.snapshot(),
      restore: (state) => book.restore(state),
    }
  },
}
const seen: DetectorInput[] = []
const witness: DetectorKind = {
  ...PRETEND_DETECTOR,
  name: 'witness',
  defaults: {},
  create: () => ({
    accept(input) {
      seen.push(input)
      return NO_FINDINGS
    },
    snapshot: () => null,
    restore: () => undefined,
  }),
}
const broken = (when: DetectorInput['type']): DetectorKind => ({
  ...PRETEND_DETECTOR,
  name: 'broken',
  defaults: {},
  create: () => ({
    accept(input) {
      if (input.type === when) throw new Error('cannot divide by a GPU')
      return NO_FINDINGS
    },
    snapshot: () => ({ some: 'state' }),
    restore() {
      throw new Error('expected something else')
    },
  }),
})

describe('engine', () => {
  it('shows detectors everything: devices, host, events, each GPU with its own processes, steps, runs, health', () => {
    seen.length = 0
    const engine = createEngine({ kinds: [witness], hostname: 'node-1' })
    engine.accept({ type: 'devices', devices: [info('GPU-0', 0), info('GPU-1', 1)] })
    const hostInput = host(START)
    const xid = event(START)
    const two = [{ processes: [process(1)] }, { gpu: 'GPU-1', processes: [process(2), process(3)] }]
    engine.accept(
      tick(START, two, { host: hostInput.type === 'host' ? hostInput.sample : null, events: xid.type === 'event' ? [xid.event] : [] }),
    )
    const steps = [step(START, 1), step(START, 2)].flatMap((input) => (input.type === 'step' ? [input.step] : []))
    engine.accept({ type: 'steps', steps, provenance: 'live' })
    const runInput = run()
    if (runInput.type === 'run') engine.accept({ type: 'run', run: runInput.run })
    const well = health(START)
    if (well.type === 'health') engine.accept({ type: 'health', health: [well.health] })
    expect(seen.map((input) => input.type)).toEqual(['device', 'device', 'host', 'event', 'gpu', 'gpu', 'step', 'step', 'run', 'health'])
    const pids = seen.flatMap((input) => (input.type === 'gpu' ? [input.processes.map((one) => one.pid)] : []))
    expect(pids).toEqual([[1], [2, 3]])
  })

  it('never judges a real run by simulated GPUs, their processes or their work', () => {
    const engine = createEngine({ kinds: detectors, hostname: 'node-1' })
    engine.accept({ type: 'devices', devices: [{ ...info('SIM-0', 0), provenance: 'simulated' }] })
    const announced = run({ id: 'real', name: 'mnist', gpus: ['0'], user: 'bob', pid: 42 })
    if (announced.type === 'run') engine.accept({ type: 'run', run: announced.run })
    const found: Finding[] = []
    for (let second = 0; second < 120; second++) {
      const at = START + second * 1000
      const busy = { gpu: 'SIM-0', utilizationRatio: 1, powerWatts: 400, processes: [process(7)] }
      found.push(...engine.accept(tick(at, [busy], { source: 'demo', provenance: 'simulated' })))
      const clock = host(at)
      found.push(...engine.accept(tick(at, [], { source: 'host', host: clock.type === 'host' ? clock.sample : null })))
      const made = step(at + 100, second, { run: 'real' })
      if (second < 60 && made.type === 'step') found.push(...engine.accept({ type: 'steps', steps: [made.step], provenance: 'live' }))
    }
    expect(found).toMatchObject([
      { detector: 'stall', severity: 'warning', provenance: 'live', subject: { run: 'real' }, evidence: { utilization_ratio: null } },
    ])
    expect(found[0]?.message).toMatch(/^Run mnist has stalled: no step for 1\d s after step 59/)
  })

  it('keeps what it learned of simulated GPUs apart, over a restart too', () => {
    const sim = { ...info('SIM-0', 0), provenance: 'simulated' as const }
    const simulated = (at: number, celsius: number) =>
      tick(at, [{ gpu: 'SIM-0', temperatureCelsius: celsius }], { source: 'demo', provenance: 'simulated' })
    const before = createEngine({ kinds: [hot], hostname: 'node-1' })
    before.accept({ type: 'devices', devices: [info('GPU-0', 0), sim] })
    before.accept(tick(START, [{ temperatureCelsius: 90 }]))
    before.accept(simulated(START, 95))
    const after = createEngine({ kinds: [hot], hostname: 'node-1' })
    expect(after.restore(JSON.parse(JSON.stringify(before.snapshot())))).toEqual([])
    after.accept({ type: 'devices', devices: [info('GPU-0', 0), sim] })
    expect(after.accept(simulated(START + 1000, 40))).toMatchObject([{ state: 'resolved', provenance: 'simulated' }])
    expect(after.findings()).toMatchObject([{ provenance: 'live', message: '90 °C' }])
  })

  it('shows a detector nothing that it has not asked for', () => {
    seen.length = 0
    const engine = createEngine({ kinds: [{ ...witness, inputs: ['host', 'health'] }], hostname: 'node-1' })
    engine.accept({ type: 'devices', devices: [info('GPU-0', 0)] })
    const hostInput = host(START)
    engine.accept(tick(START, [{}], { host: hostInput.type === 'host' ? hostInput.sample : null }))
    const well = health(START)
    if (well.type === 'health') engine.lookAtSources([well.health, { ...well.health, provenance: 'replay' }], START + 5000)
    expect(seen.map((input) => input.type)).toEqual(['host', 'health'])
    expect(seen.at(-1)).toMatchObject({ at: START + 5000 })
  })

  it('keeps what is active, and fills in host and number', () => {
    const engine = createEngine({ kinds: [hot], hostname: 'node-1' })
    engine.accept({ type: 'devices', devices: [info(GPU, 4)] })
    const [found] = engine.accept(tick(START, [{ temperatureCelsius: 90 }]))
    expect(found?.subject).toMatchObject({ host: 'node-1', gpuIndex: 4 })
    expect(engine.findings()).toEqual([found])
    expect(engine.accept(tick(START + 1000, [{ temperatureCelsius: 50 }]))[0]?.state).toBe('resolved')
    expect(engine.findings()).toEqual([])
  })

  it('lays given options over the defaults, and leaves out what is disabled', () => {
    const engine = createEngine({ kinds: [hot], options: { hot: { limit: 95 } }, hostname: 'n' })
    expect(engine.accept(tick(START, [{ temperatureCelsius: 90 }]))).toEqual([])
    const none = createEngine({ kinds: [hot], disabled: ['hot'], hostname: 'n' })
    expect(none.accept(tick(START, [{ temperatureCelsius: 99 }]))).toEqual([])
  })

  it('goes on without a detector that throws, and says so once', () => {
    const failures: DetectorFailure[] = []
    const engine = createEngine({ kinds: [broken('gpu'), hot], hostname: 'n', onFailure: (failure) => failures.push(failure) })
    const first = engine.accept(tick(START, [{ temperatureCelsius: 90 }]))
    expect(first.map((finding) => finding.detector)).toEqual(['detector_failure', 'hot'])
    expect(first[0]?.message).toContain('cannot divide by a GPU')
    expect(engine.accept(tick(START + 1000, [{ temperatureCelsius: 90 }]))).toEqual([])
    expect(failures).toMatchObject([{ detector: 'broken', while: 'running' }])
  })

  it('ends the findings of a detector that fails', () => {
    let angry = false
    const moody: DetectorKind<{ limit: number }> = {
      ...hot,
      create(options) {
        const inner = hot.create(options)
        return {
          ...inner,
          accept(input) {
            if (angry) throw new Error('no')
            return inner.accept(input)
          },
        }
      },
    }
    const engine = createEngine({ kinds: [moody], hostname: 'n' })
    engine.accept(tick(START, [{ temperatureCelsius: 90 }]))
    angry = true
    const states = engine.accept(tick(START + 1000)).map((finding) => [finding.detector, finding.state])
    expect(states).toEqual([
      ['hot', 'resolved'],
      ['detector_failure', 'active'],
    ])
  })

  it('ends the findings of a GPU that is no longer listed', () => {
    const engine = createEngine({ kinds: [hot], hostname: 'n' })
    engine.accept({ type: 'devices', devices: [info('GPU-0', 0), info('GPU-1', 1)] })
    engine.accept(tick(START, [{ temperatureCelsius: 90 }, { gpu: 'GPU-1', temperatureCelsius: 90 }]))
    const found = engine.accept({ type: 'devices', devices: [info('GPU-0', 0)] })
    expect(found.map((finding) => [finding.subject.gpu, finding.state])).toEqual([['GPU-1', 'resolved']])
  })

  it('does not end findings about a GPU that a driver has not listed since the restart, for ten minutes', () => {
    const before = createEngine({ kinds: [hot], hostname: 'h' })
    before.accept({ type: 'devices', devices: [info(GPU, 0)] })
    before.accept(tick(START, [{ temperatureCelsius: 90 }]))
    const saved = JSON.stringify(before.snapshot())
    const restored = () => {
      const engine = createEngine({ kinds: [hot], hostname: 'h' })
      engine.restore(JSON.parse(saved))
      return engine
    }
    const late = restored()
    for (const devices of [[], [info('GPU-1', 1)]]) expect(late.accept({ type: 'devices', devices })).toEqual([])
    for (let minute = 1; minute <= 9; minute++) expect(late.accept(tick(START + minute * 60_000, []))).toEqual([])
    expect(late.accept(tick(START + 10 * 60_000, []))).toMatchObject([{ state: 'resolved', message: 'The GPU is no longer listed.' }])
    const lost = restored()
    lost.accept({ type: 'devices', devices: [info(GPU, 0)] })
    expect(lost.accept({ type: 'devices', devices: [] })).toMatchObject([{ state: 'resolved' }])
    // A clock that jumps is no time that has passed.
    const jumped = restored()
    expect(jumped.accept(tick(START + 86_400_000, []))).toEqual([])
    expect(jumped.accept({ type: 'devices', devices: [] })).toEqual([])
  })

  it('goes on after a restart', () => {
    const before = createEngine({ kinds: detectors, hostname: 'n' })
    before.accept({ type: 'devices', devices: [info(GPU, 0)] })
    for (let second = 0; second < 40; second++) before.accept(tick(START + second * 1000, [{ temperatureCelsius: 89 }]))
    expect(before.findings().map((finding) => finding.detector)).toEqual(['thermal'])
    const after = createEngine({ kinds: detectors, hostname: 'n' })
    expect(after.restore(JSON.parse(JSON.stringify(before.snapshot())))).toEqual([])
    expect(after.findings()).toEqual(before.findings())
    expect(after.accept(tick(START + 41_000, [{ temperatureCelsius: 89 }]))).toEqual([])
    expect(after.accept(tick(START + 42_000, [{ temperatureCelsius: 50 }]))[0]).toMatchObject({ detector: 'thermal', state: 'resolved' })
  })

  it('starts a detector anew whose saved state is of no use, and ends what nothing watches anymore', () => {
    const failures: DetectorFailure[] = []
    const before = createEngine({ kinds: [hot, broken('gpu')], hostname: 'n' })
    before.accept(tick(START, [{ temperatureCelsius: 90 }]))
    const after = createEngine({ kinds: [broken('host')], hostname: 'n', onFailure: (failure) => failures.push(failure) })
    const saved = JSON.parse(JSON.stringify(before.snapshot())) as { detectors: Record<string, unknown> }
    saved.detectors.broken = { some: 'state' }
    const ended = after.restore(saved)
    expect(ended.map((finding) => [finding.detector, finding.state])).toEqual(
      expect.arrayContaining([
        ['hot', 'resolved'],
        ['detector_failure', 'resolved'],
      ]),
    )
    expect(failures).toMatchObject([{ detector: 'broken', while: 'restoring' }])
    expect(() => after.restore({ version: 99 })).toThrow('version 1')
  })

  it('has a name of its own for each detector, in snake case', () => {
    const names = detectors.map((kind) => kind.name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/)
  })

  it('knows the time of a stuck driver from its health', () => {
    const engine = createEngine({ kinds: detectors, hostname: 'n' })
    engine.accept(tick(START))
    const stuck = health(START, { state: 'not_responding', since: START + 7000 })
    const found = stuck.type === 'health' ? engine.accept({ type: 'health', health: [stuck.health] }) : []
    expect(found).toMatchObject([{ detector: 'driver_stuck', at: START + 7000, since: START + 7000 }])
  })
})
