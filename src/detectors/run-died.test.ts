import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { HubEvent } from '../core/kinds.ts'
import { type FindingParts, findingWith } from '../core/model.fixture.ts'
import type { Finding, Run, RunEnding } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { createEngine } from './engine.ts'
import { detectors } from './index.ts'
import { event, GPU, gpu, host, run, START, step } from './inputs.fixture.ts'
import { runDied } from './run-died.ts'

const MINUTE = 60_000
const ENDING: RunEnding = { message: null, cause: null, place: null, isAsked: false, isPresumed: false }
const died = (at: number, outcome: Run['outcome'], ending: Partial<RunEnding> = {}, more: Partial<Run> = {}): DetectorInput =>
  run({ endedAt: at, outcome, ending: { ...ENDING, ...ending }, gpus: [GPU], ...more })
const feedTo = (inputs: readonly DetectorInput[]): Finding[] => feed(runDied.create(runDied.defaults), inputs)
const lived = (count = 10) => [run(), ...Array.from({ length: count }, (_, index) => step(START + index * 1000, index, {}))]
const saying = (finding: FindingParts): DetectorInput => ({
  type: 'finding',
  finding: findingWith({ at: START, message: 'It is so.', ...finding }),
})
const ofRun = { run: 'run-1', rank: 0 }
const ofGpu = { gpu: GPU, gpuIndex: 0 }

detectorContract({
  kind: runDied,
  trouble: () => [...lived(), died(START + 20_000, 'failed', { message: 'ValueError: no' }), gpu(START + 90 * MINUTE)],
})

describe('run_died', () => {
  it('explains an out-of-memory error in one sentence', () => {
    const found = feedTo([
      ...lived(41_201),
      saying({ at: START + 41_128_000, subject: ofRun, predictedAt: START + 41_190_000 }),
      died(START + 41_200_000, 'oom', { cause: 'a leak', place: 'train.py:77 in remember' }),
    ])
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({
      severity: 'critical',
      message:
        'Run run-1 died after 11 h at step 41,200: out of GPU memory, a leak from train.py:77 in remember (forecast 1 min 12 s before).',
      evidence: { outcome: 'oom', step: 41_200, forecast_seconds_before: 72, forecast_error_seconds: 10 },
    })
  })

  it('says nothing of a run that ended well, or of one that goes on', () => {
    expect(feedTo([...lived(), died(START + 20_000, 'success')])).toEqual([])
    expect(feedTo([...lived(), gpu(START + 30 * MINUTE)])).toEqual([])
  })

  it('neither ends nor overlooks a death because the clock jumped', () => {
    const year = 365 * 24 * 60 * MINUTE
    const inputs = [gpu(START + 19_000), died(START + 20_000, 'failed'), gpu(START + 21_000), gpu(START + 22_000 + year)]
    expect(feedTo([...lived(), ...inputs]).map(({ state }) => state)).toEqual(['active'])
    const during = [...inputs, run({ id: 'run-2' }), died(START + 24_000, 'failed', {}, { id: 'run-2' })]
    expect(feedTo([...lived(), ...during]).map(({ subject, state }) => [subject.run, state])).toEqual([
      ['run-1', 'active'],
      ['run-2', 'active'],
    ])
    const minutes = Array.from({ length: 62 }, (_, index) => gpu(START + 30_000 + index * MINUTE))
    expect(feedTo([...lived(), ...during, ...minutes]).filter(({ state }) => state === 'resolved')).toHaveLength(2)
  })

  it('is a warning where somebody asked for the end', () => {
    const [finding] = feedTo([...lived(), died(START + 20_000, 'killed', { message: 'ended by SIGINT', isAsked: true })])
    expect(finding).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('was stopped after 20 s at step 9: ended by SIGINT'),
    })
  })

  it('is one finding for several witnesses, with what the later ones add', () => {
    const at = START + 20_000
    const found = feedTo([
      ...lived(),
      died(at, 'killed', { message: 'ended by SIGKILL' }),
      died(at, 'killed', { message: 'ended by SIGKILL' }),
      saying({ at: at + 2000, detector: 'xid', subject: ofGpu, message: 'XID 79 on GPU 0: fell off the bus.', fingerprint: 'xid' }),
      died(at, 'failed', { message: 'CUDA error: unspecified launch failure' }),
    ])
    expect(new Set(found.map((finding) => finding.fingerprint)).size).toBe(1)
    expect(found.every((finding) => finding.state === 'active')).toBe(true)
    expect(found.at(-1)?.message).toContain('XID 79 on GPU 0: fell off the bus (CUDA error: unspecified launch failure)')
  })

  it('does not blame what happened on another GPU, or long before', () => {
    const other = saying({ detector: 'xid', at: START + 19_000, subject: { ...ofGpu, gpu: 'GPU-7', gpuIndex: 7 }, message: 'XID 79' })
    const early = saying({ detector: 'xid', at: START - 10 * MINUTE, subject: ofGpu, message: 'XID 31', fingerprint: 'y' })
    const [finding] = feedTo([...lived(), other, early, died(START + 20_000, 'failed', { message: 'exit code 1' })])
    expect(finding?.message).toMatch(/: exit code 1\.$/)
  })

  describe('a kill by the kernel', () => {
    const text = 'the kernel killed python (PID 4711): the host ran out of memory'
    const killed = event(START + 19_900, { event: 'oom_kill', gpu: null, code: 4711, message: text })
    const told = (outcome: 'killed' | 'failed', message: string, run: object) =>
      feedTo([host(START, { hostname: 'box' }), ...lived(), killed, died(START + 20_000, outcome, { message }, run)]).at(-1)?.message

    it('is the cause of the run of that process', () => {
      expect(told('killed', 'ended by SIGKILL', { pid: 4711 })).toContain(`: ${text} (ended by SIGKILL)`)
      expect(told('killed', 'ended by SIGKILL', { pid: 99 })).toMatch(/: ended by SIGKILL\.$/)
      expect(told('killed', 'ended by SIGKILL', { pid: 4711, host: 'elsewhere' })).toMatch(/: ended by SIGKILL\.$/)
    })

    it('is the cause where the error names the worker, or a shell passes it on', () => {
      expect(told('failed', 'DataLoader worker (pid(s) 4711) exited unexpectedly', { pid: 99 })).toContain(text)
      expect(told('failed', 'DataLoader worker (pid(s) 14711) exited unexpectedly', { pid: 99 })).not.toContain(text)
      expect(told('failed', 'exit code 137', { pid: 99 })).toContain(text)
      expect(told('failed', 'exit code 1', { pid: 99 })).not.toContain(text)
    })
  })

  it('says nothing of who was behind a kill that the kernel did', () => {
    const killed = event(START + 19_900, { event: 'oom_kill', gpu: null, code: 4711, message: 'the kernel killed python (PID 4711)' })
    const [finding] = feedTo([...lived(), killed, died(START + 20_000, 'killed', { message: 'ended by SIGKILL' }, { pid: 4711 })])
    expect(finding?.advice.join()).toMatch(/memory of the host/)
  })

  it('has no empty end where the error has no text', () => {
    expect(feedTo([...lived(), died(START + 20_000, 'killed', { message: 'KeyboardInterrupt: ' })])[0]?.message).toMatch(
      /: KeyboardInterrupt\.$/,
    )
  })

  it('names a shutdown of the machine for runs that it killed, and for no others', () => {
    const box = host(START, { hostname: 'box' })
    const down = event(START + 5000, { event: 'shutdown', gpu: null, code: START + 19_000, message: 'this machine was about to restart' })
    const term = { message: 'ended by SIGTERM', isAsked: true }
    const told = (outcome: 'killed' | 'failed', more: object, ...before: DetectorInput[]) =>
      feedTo([box, ...lived(), ...before, died(START + 20_000, outcome, term, { host: 'box', ...more })]).at(-1)
    expect(told('killed', {}, down)).toMatchObject({
      severity: 'critical',
      message: expect.stringContaining('died after 20 s at step 9: this machine was about to restart (ended by SIGTERM)'),
    })
    const canceled = event(START + 6000, { event: 'shutdown', gpu: null, code: null, message: 'canceled' })
    expect(told('killed', {}, down, canceled)).toMatchObject({ severity: 'warning' })
    expect(told('killed', { host: 'elsewhere' }, down)).toMatchObject({ severity: 'warning' })
    expect(told('failed', {}, down)?.message).not.toContain('restart')
    const after = event(START + 20_500, { event: 'shutdown', gpu: null, code: START + 20_500, message: 'this machine was shutting down' })
    const late = feedTo([box, ...lived(), died(START + 20_000, 'killed', term, { host: 'box' }), after])
    expect(late.map((finding) => finding.severity)).toEqual(['warning', 'critical'])
    expect(late[1]?.message).toContain('this machine was shutting down (ended by SIGTERM)')
  })

  it('names the first step that was NaN', () => {
    const nan = saying({ detector: 'loss_nan', at: START + 7000, subject: ofRun, evidence: { step: 7 } })
    const [finding] = feedTo([...lived(), nan, died(START + 20_000, 'nan')])
    expect(finding?.message).toContain('its loss was NaN from step 7 on')
    const rare = saying({ detector: 'loss_nan', at: START + 7000, subject: ofRun, evidence: { step: 20, earliest_step: 11 } })
    expect(feedTo([...lived(), rare, died(START + 20_000, 'nan')])[0]?.message).toContain('NaN from a step between 11 and 20 on')
  })

  it('is over when the run goes on, when it is started again under its name, or after an hour', () => {
    const dead = [...lived(), died(START + 20_000, 'killed', { isPresumed: true, message: 'its process (7) is gone' })]
    const last = (...more: DetectorInput[]) => feedTo([...dead, ...more]).at(-1)
    expect(last(run())).toMatchObject({ state: 'resolved', message: 'Run run-1 is still running.' })
    expect(last(run({ id: 'run-2', name: 'run-1', startedAt: START + 50_000 }))).toMatchObject({ state: 'resolved' })
    const again = run({ id: 'run-2', name: 'run-1', startedAt: START + 50_000 })
    expect(last(again, ...dead.slice(-1))).toMatchObject({ state: 'resolved', message: 'Run run-1 was started again.' })
    expect(last(run({ id: 'run-2', name: 'other', startedAt: START + 50_000 }))?.state).toBe('active')
    expect(last(gpu(START + 59 * MINUTE))?.state).toBe('active')
    expect(last(gpu(START + 62 * MINUTE))?.state).toBe('resolved')
  })

  it('does not report what was imported from long ago', () => {
    expect(feedTo([gpu(START + 300 * MINUTE), run(), died(START + 20_000, 'oom')])).toEqual([])
  })
})

describe('in the engine', () => {
  const engine = () => createEngine({ kinds: detectors, hostname: 'h' })
  const runEvent = (input: DetectorInput): HubEvent => ({ type: 'run', run: (input as Extract<DetectorInput, { type: 'run' }>).run })

  it('calls a run by its name, and adds the id only where two share it', () => {
    const id = '5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d'
    const one = engine()
    const told = one.accept(runEvent(died(START + 20_000, 'failed', { message: 'exit code 1' }, { id, name: 'llama-1b' })))
    expect(told[0]?.message).toBe('Run llama-1b died after 20 s: exit code 1.')
    const two = engine()
    two.accept(runEvent(run({ id: 'another', name: 'llama-1b' })))
    const shared = two.accept(runEvent(died(START + 20_000, 'failed', { message: 'exit code 1' }, { id, name: 'llama-1b' })))
    expect(shared[0]?.message).toBe('Run llama-1b [5f3a9c0d] died after 20 s: exit code 1.')
  })

  it('takes a real run beside simulated GPUs for real, and a simulated one for simulated', () => {
    const one = engine()
    const { sample } = gpu(START) as Extract<DetectorInput, { type: 'gpu' }>
    const tick = {
      seq: 1,
      at: START,
      source: 'demo',
      provenance: 'simulated' as const,
      gpus: [sample],
      processes: [],
      host: null,
      events: [],
    }
    one.accept({ type: 'tick', tick })
    const real = one.accept(runEvent(died(START + 20_000, 'failed', { message: 'exit code 1' })))
    expect(real[0]?.provenance).toBe('live')
    const made = (step(START + 1000, 1, { run: 'sim', loss: Number.NaN }) as Extract<DetectorInput, { type: 'step' }>).step
    expect(one.accept({ type: 'steps', provenance: 'simulated', steps: [made] })[0]).toMatchObject({
      detector: 'loss_nan',
      provenance: 'simulated',
    })
  })

  it('shows a forecast to the story of the death that follows it', () => {
    const one = engine()
    one.accept(runEvent(run()))
    const nan = one.accept({
      type: 'steps',
      provenance: 'live',
      steps: [(step(START + 1000, 12, { loss: Number.NaN }) as Extract<DetectorInput, { type: 'step' }>).step],
    })
    expect(nan.map((finding) => finding.detector)).toEqual(['loss_nan'])
    const told = one.accept(runEvent(died(START + 20_000, 'nan')))
    expect(told.filter((finding) => finding.state === 'active').map((finding) => finding.message)).toEqual([
      'Run run-1 died after 20 s at step 12: its loss was NaN from step 12 on.',
    ])
  })
})
