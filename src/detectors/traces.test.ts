/** Ten recorded runs on a real card, through the engine: what is to be found is found in time, and nothing else is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { Finding, GpuEvent, GpuSample, HostSample, TrainingStep } from '../core/model.ts'
import { openRecording } from '../core/recording/recording.ts'
import { createEngine } from './engine.ts'
import { detectors } from './index.ts'
import { alarms } from './inputs.fixture.ts'

const TRACES = join(import.meta.dirname, '../../fixtures/traces')
/** Their troubles are the memory detectors' own, and their tests'. */
const MEMORY = new Set(['leak', 'oom', 'memory_pressure', 'change'])
const NAMES = [
  'benign_sawtooth',
  'divergence',
  'eval_spikes',
  'growing_batch',
  'healthy',
  'intruder',
  'leak_graph',
  'leak_sawtooth',
  'stall',
  'warmup_plateau',
]

interface Truth {
  readonly events: readonly { readonly timestamp: string; readonly event: string; readonly pid?: number; readonly step?: number }[]
  readonly expect: readonly string[]
}

function truthOf(name: string): Truth {
  return JSON.parse(readFileSync(join(TRACES, name, 'truth.json'), 'utf8')) as Truth
}

function momentOf(truth: Truth, event: string): number {
  return Date.parse(truth.events.find((one) => one.event === event)?.timestamp ?? '')
}

interface Replayed {
  readonly findings: Finding[]
  readonly sampleTimes: number[]
}

async function replay(name: string, mode: 'everything' | 'gpu alone'): Promise<Replayed> {
  const engine = createEngine({ kinds: detectors.filter((kind) => !MEMORY.has(kind.name)), hostname: 'node-1' })
  const recording = await openRecording(mode === 'everything' ? join(TRACES, name) : join(TRACES, name, 'gpu_metrics.jsonl.gz'))
  const findings: Finding[] = []
  const sampleTimes: number[] = []
  const publish = (event: HubEvent) => findings.push(...engine.accept(event))
  let known: unknown = null
  let seq = 0
  for await (const item of recording) {
    if (item.devices !== known) publish({ type: 'devices', devices: item.devices })
    known = item.devices
    const gpus = item.samples.filter((sample): sample is GpuSample => sample.kind === 'gpu')
    const host = item.samples.find((sample): sample is HostSample => sample.kind === 'host') ?? null
    const events = item.samples.filter((sample): sample is GpuEvent => sample.kind === 'event')
    const steps = item.samples.filter((sample): sample is TrainingStep => sample.kind === 'step')
    if (gpus.length + events.length > 0) {
      sampleTimes.push(item.at)
      const processes = gpus.flatMap((gpu) => (gpu.processes ?? []).map((process) => ({ ...process, gpu: gpu.gpu, info: null })))
      const tick: Tick = { seq: seq++, at: item.at, source: 'replay', provenance: 'replay', gpus, processes, host, events }
      publish({ type: 'tick', tick })
    }
    if (steps.length > 0) publish({ type: 'steps', steps, provenance: 'live' })
  }
  expect(engine.failures()).toEqual([])
  return { findings, sampleTimes }
}

for (const mode of ['everything', 'gpu alone'] as const)
  describe(`recorded runs, ${mode}`, () => {
    for (const name of NAMES) {
      const expected = truthOf(name).expect.filter((detector) => !MEMORY.has(detector))
      // Divergence goes through exploding gradients and a rising loss to NaN: all three are true.
      const alsoTrue = name === 'divergence' ? ['grad_explosion', 'loss_spike'] : []
      it(`${name}: ${expected.length === 0 ? 'nothing to find' : expected.join(', ')}`, async () => {
        const { findings } = await replay(name, mode)
        const raised = new Set(alarms(findings).map((finding) => finding.detector))
        const unexpected = alarms(findings).filter(
          (finding) => !expected.includes(finding.detector) && !alsoTrue.includes(finding.detector),
        )
        expect(unexpected.map((finding) => finding.message)).toEqual([])
        if (mode === 'everything') for (const detector of expected) expect([...raised]).toContain(detector)
      })
    }
  })

describe('how soon', () => {
  for (const mode of ['everything', 'gpu alone'] as const)
    it(`the intruder is found within two samples, ${mode}, and is over when it leaves`, async () => {
      const pid = truthOf('intruder').events.find((event) => event.event === 'intruder_start')?.pid
      const { findings, sampleTimes } = await replay('intruder', mode)
      const own = findings.filter((finding) => finding.detector === 'intruder')
      expect(own.map((finding) => finding.subject.pid)).toEqual(own.map(() => pid))
      const recorded = await firstSampleWith(pid ?? 0)
      const found = own.find((finding) => finding.state === 'active')?.at ?? Number.POSITIVE_INFINITY
      expect(sampleTimes.filter((at) => at >= recorded && at <= found).length).toBeLessThanOrEqual(2)
      expect(own.at(-1)?.state).toBe('resolved')
      expect(own.at(-1)?.at).toBeLessThan(momentOf(truthOf('intruder'), 'intruder_end') + 3000)
    })

  it('the stall is found within ten step times and two seconds, and is over with the next step', async () => {
    const truth = truthOf('stall')
    const { findings } = await replay('stall', 'everything')
    const own = findings.filter((finding) => finding.detector === 'stall')
    expect(own.map((finding) => finding.state)).toEqual(['active', 'resolved'])
    const usual = Number(own[0]?.evidence.usual_step_seconds)
    expect((own[0]?.at ?? 0) - momentOf(truth, 'stall_start')).toBeLessThanOrEqual(usual * 10_000 + 2000)
    expect(own[1]?.at).toBeLessThan(momentOf(truth, 'stall_end') + 1000)
  })

  it('the stall is mentioned from the GPU alone while it lasts', async () => {
    const truth = truthOf('stall')
    const { findings } = await replay('stall', 'gpu alone')
    const own = findings.filter((finding) => finding.detector === 'stall')
    expect(own.map((finding) => [finding.state, finding.severity])).toEqual([
      ['active', 'info'],
      ['resolved', 'info'],
    ])
    expect(own[0]?.at).toBeGreaterThan(momentOf(truth, 'stall_start'))
    expect(own[0]?.at).toBeLessThan(momentOf(truth, 'stall_end'))
  })

  it('NaN is found at its step: first in the gradients, then in the loss', async () => {
    const { findings } = await replay('divergence', 'everything')
    const step = truthOf('divergence').events.find((event) => event.event === 'nan')?.step
    const own = findings.filter((finding) => finding.detector === 'loss_nan' && finding.state === 'active')
    expect(own[0]?.evidence).toMatchObject({ step: (step ?? 0) - 1, gradient_norm: 'NaN' })
    expect(own.find((finding) => finding.severity === 'critical')?.evidence).toMatchObject({ step, loss: 'NaN' })
  })
})

/** When the recording first lists a process. */
async function firstSampleWith(pid: number): Promise<number> {
  for await (const item of await openRecording(join(TRACES, 'intruder', 'gpu_metrics.jsonl.gz')))
    for (const sample of item.samples) if (sample.kind === 'gpu' && sample.processes?.some((process) => process.pid === pid)) return item.at
  return Number.NaN
}
