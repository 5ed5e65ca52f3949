// Replays the recorded runs through the real detectors and compares what they say with what happened.
import { readdirSync, readFileSync } from 'node:fs'
import { openRecording } from '../../dist/core/recording/recording.js'
import { createEngine } from '../../dist/detectors/engine.js'
import { detectors } from '../../dist/detectors/index.js'

const TRACES = new URL('../../fixtures/traces/', import.meta.url)
/** What the GPU alone cannot tell: a NaN, and that a silence is a stall (there it is information). */
const TRAINING_ONLY = new Set(['loss_nan', 'stall'])
/** What is true as well: a divergence goes through exploding gradients and a rising loss; memory that runs full is under
 * pressure; and from the GPU alone batches that grow cannot be told from a leak. */
const ALSO_TRUE = {
  divergence: ['grad_explosion', 'loss_spike'],
  growing_batch: ['oom'],
  'growing_batch, GPU alone': ['oom', 'leak'],
  leak_graph: ['memory_pressure'],
  leak_sawtooth: ['memory_pressure'],
}

export function traceNames() {
  return readdirSync(TRACES).sort()
}

export function truthOf(name, gpuAlone) {
  const truth = JSON.parse(readFileSync(new URL(`${name}/truth.json`, TRACES), 'utf8'))
  const at = (event) => Date.parse(truth.events.find((one) => one.event === event)?.timestamp ?? '')
  const find = (event) => truth.events.find((one) => one.event === event)
  return {
    name,
    expect: truth.expect.filter((one) => !gpuAlone || !TRAINING_ONLY.has(one)),
    alsoTrue: ALSO_TRUE[gpuAlone ? `${name}, GPU alone` : name] ?? ALSO_TRUE[name] ?? [],
    leakStart: at('leak_start'),
    oom: at('oom'),
    /** A run that stops without a word looks like a stall for a moment: what is said after its end is not judged. */
    end: Math.min(...['end', 'oom'].map(at).filter((one) => !Number.isNaN(one))),
    stallStart: at('stall_start'),
    nanStep: find('nan')?.step ?? null,
    intruder: find('intruder_start')?.pid ?? null,
  }
}

export async function itemsOf(name, gpuAlone) {
  const folder = new URL(`${name}/${gpuAlone ? 'gpu_metrics.jsonl.gz' : ''}`, TRACES).pathname
  const items = []
  for await (const item of await openRecording(folder)) items.push(item)
  return items
}

/** Feeds items, each changed by `warp`, to fresh detectors; gives every finding. */
export function replay(items, warp = (item) => item, kinds = detectors) {
  const engine = createEngine({ kinds, hostname: 'bench' })
  const findings = []
  let known = null
  let seq = 0
  for (const original of items) {
    const item = warp(original)
    if (item.devices !== known) findings.push(...engine.accept({ type: 'devices', devices: item.devices }))
    known = item.devices
    const of = (kind) => item.samples.filter((sample) => sample.kind === kind)
    const gpus = of('gpu')
    if (gpus.length > 0) {
      const processes = gpus.flatMap((gpu) => (gpu.processes ?? []).map((one) => ({ ...one, gpu: gpu.gpu, info: null })))
      const tick = {
        seq: seq++,
        at: item.at,
        source: 'replay',
        provenance: 'replay',
        gpus,
        processes,
        host: of('host')[0] ?? null,
        events: of('event'),
      }
      findings.push(...engine.accept({ type: 'tick', tick }))
    }
    const steps = of('step')
    if (steps.length > 0) findings.push(...engine.accept({ type: 'steps', steps, provenance: 'replay' }))
  }
  if (engine.failures().length > 0) throw new Error(`a detector failed: ${JSON.stringify(engine.failures())}`)
  return findings
}

/** What of a replay matters: how soon, how early, how well the interval held, and what should not have been said. */
export function judge(findings, truth, items) {
  const active = findings.filter((one) => one.state === 'active')
  const loud = active.filter((one) => one.severity !== 'info')
  const first = (detector) => loud.find((one) => one.detector === detector)?.at ?? null
  const leakAt = first('leak')
  const oomAt = active.find((one) => one.detector === 'oom' && (one.riskLevel === 'high' || one.riskLevel === 'critical'))?.at ?? null
  return {
    missing: truth.expect.filter((one) => first(one) === null),
    unexpected: [
      ...new Set(
        loud
          .filter((one) => one.at <= truth.end && !truth.expect.includes(one.detector) && !truth.alsoTrue.includes(one.detector))
          .map((one) => `${one.detector}:${one.severity}`),
      ),
    ],
    leakShare: leakAt === null || Number.isNaN(truth.oom) ? null : (leakAt - truth.leakStart) / (truth.oom - truth.leakStart),
    oomLeadSeconds: oomAt === null || Number.isNaN(truth.oom) ? null : (truth.oom - oomAt) / 1000,
    coverage: oomAt === null || Number.isNaN(truth.oom) ? null : coverage(findings, oomAt, truth.oom),
    ...soonness(active, truth, items),
    statements: findings.length,
  }
}

/** How soon the troubles of the training and the intruder were found; null where there is none, or none was found. */
function soonness(active, truth, items) {
  const stall = truth.expect.includes('stall') ? active.find((one) => one.detector === 'stall') : undefined
  const nan = active.find((one) => one.detector === 'loss_nan' && one.severity === 'critical')
  const intruder = active.find((one) => one.detector === 'intruder' && one.subject.pid === truth.intruder)
  const isSeen = (item) => item.samples.some((one) => one.kind === 'gpu' && one.processes?.some(({ pid }) => pid === truth.intruder))
  return {
    stallLateSeconds: stall ? (stall.at - truth.stallStart) / 1000 - 10 * stall.evidence.usual_step_seconds : null,
    nanLateSteps: nan && truth.nanStep !== null ? nan.evidence.step - truth.nanStep : null,
    intruderSamples: intruder ? items.filter((item) => isSeen(item) && item.at <= intruder.at).length : null,
  }
}

/** Share of the time from the first warning to the end in which the interval said last held the truth. */
function coverage(findings, from, to) {
  const said = findings.filter((one) => one.detector === 'oom')
  let good = 0
  let all = 0
  for (let at = from; at < to; at += 100) {
    const now = said.filter((one) => one.at <= at).at(-1)
    all++
    if (now?.state === 'active' && now.predictedEarliestAt <= to && to <= now.predictedLatestAt) good++
  }
  return good / all
}
