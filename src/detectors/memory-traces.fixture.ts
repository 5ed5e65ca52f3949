/** Replays a recorded run through one memory detector, with training figures or from the GPU alone. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { Finding, ProcessView } from '../core/model.ts'
import { openRecording } from '../core/recording/recording.ts'

const TRACES = join(import.meta.dirname, '../../fixtures/traces')
/** Of runs that tell their end, too. */
export const RUNS = join(import.meta.dirname, '../../fixtures/runs')

export type Mode = 'with training figures' | 'GPU alone'
export const MODES: readonly Mode[] = ['with training figures', 'GPU alone']

export interface Trace {
  readonly inputs: readonly DetectorInput[]
  readonly expect: readonly string[]
  readonly startAt: number
  readonly leakStart: number
  readonly oom: number
}

export async function traceOf(name: string, mode: Mode, folder = TRACES): Promise<Trace> {
  const truth = JSON.parse(readFileSync(join(folder, name, 'truth.json'), 'utf8')) as {
    events: { timestamp: string; event: string }[]
    expect: string[]
  }
  const momentOf = (event: string) => Date.parse(truth.events.find((one) => one.event === event)?.timestamp ?? '')
  const inputs: DetectorInput[] = []
  let known: unknown = null
  let startAt = Number.NaN
  for await (const item of await openRecording(mode === 'GPU alone' ? join(folder, name, 'gpu_metrics.jsonl.gz') : join(folder, name))) {
    if (Number.isNaN(startAt)) startAt = item.at
    if (item.devices !== known) for (const device of item.devices) inputs.push({ type: 'device', device })
    known = item.devices
    for (const sample of item.samples) {
      if (sample.kind === 'gpu') {
        const processes: ProcessView[] = (sample.processes ?? []).map((one) => ({ ...one, gpu: sample.gpu, info: null }))
        inputs.push({ type: 'gpu', sample, processes })
      } else if (sample.kind === 'step') inputs.push({ type: 'step', step: sample })
    }
  }
  return { inputs, expect: truth.expect, startAt, leakStart: momentOf('leak_start'), oom: momentOf('oom') }
}

export function findingsOf<Options>(kind: DetectorKind<Options>, inputs: readonly DetectorInput[]): Finding[] {
  const detector = kind.create(kind.defaults)
  return inputs.flatMap((input) => [...detector.accept(input)])
}
