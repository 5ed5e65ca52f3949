// Replays the recorded runs through the real detectors and compares what they say with what happened.
import { readdirSync, readFileSync } from 'node:fs'
import { change } from '../../dist/detectors/change.js'
import { createEngine } from '../../dist/detectors/engine.js'
import { leak } from '../../dist/detectors/leak.js'
import { memoryPressure } from '../../dist/detectors/memory-pressure.js'
import { oom } from '../../dist/detectors/oom.js'
import { openRecording } from '../../dist/recording/recording.js'

const TRACES = new URL('../../fixtures/traces/', import.meta.url)
export const KINDS = [leak, oom, memoryPressure, change]
const MEMORY = new Set(KINDS.map((kind) => kind.name))

export function traceNames() {
  return readdirSync(TRACES).sort()
}

export function truthOf(name) {
  const truth = JSON.parse(readFileSync(new URL(`${name}/truth.json`, TRACES), 'utf8'))
  const at = (event) => Date.parse(truth.events.find((one) => one.event === event)?.timestamp ?? '')
  return { expect: truth.expect.filter((one) => MEMORY.has(one)), leakStart: at('leak_start'), oom: at('oom') }
}

export async function itemsOf(name, gpuAlone) {
  const folder = new URL(`${name}/${gpuAlone ? 'gpu_metrics.jsonl.gz' : ''}`, TRACES).pathname
  const items = []
  for await (const item of await openRecording(folder)) items.push(item)
  return items
}

/** Feeds items, each changed by `warp`, to fresh detectors; gives every finding. */
export function replay(items, warp = (item) => item, kinds = KINDS) {
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
    if (steps.length > 0) findings.push(...engine.accept({ type: 'steps', steps }))
  }
  if (engine.failures().length > 0) throw new Error(`a detector failed: ${JSON.stringify(engine.failures())}`)
  return findings
}

/** What of a replay matters: how soon, how early, how well the interval held, and what should not have been said. */
export function judge(findings, truth, endAt) {
  const active = findings.filter((one) => one.state === 'active')
  const loud = active.filter((one) => one.severity !== 'info')
  const first = (detector) => loud.find((one) => one.detector === detector)?.at ?? null
  const leakAt = first('leak')
  const oomAt = active.find((one) => one.detector === 'oom' && (one.riskLevel === 'high' || one.riskLevel === 'critical'))?.at ?? null
  return {
    missing: truth.expect.filter((one) => first(one) === null),
    unexpected: [...new Set(loud.filter((one) => !truth.expect.includes(one.detector)).map((one) => `${one.detector}:${one.severity}`))],
    leakShare: leakAt === null || Number.isNaN(truth.oom) ? null : (leakAt - truth.leakStart) / (truth.oom - truth.leakStart),
    oomLeadSeconds: oomAt === null || Number.isNaN(truth.oom) ? null : (truth.oom - oomAt) / 1000,
    coverage: oomAt === null || Number.isNaN(truth.oom) ? null : coverage(findings, oomAt, truth.oom),
    statements: findings.length,
    endAt,
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
