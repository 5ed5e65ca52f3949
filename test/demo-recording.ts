/** Minutes of simulated GPUs as a recording, made at once: the same simulation as --source demo. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessInfo } from '../src/core/model.ts'
import { deviceRecord, gpuRecord, stepRecord } from '../src/core/record.ts'
import { demo } from '../src/sources/demo/index.ts'
import { temporaryFolder } from './program.ts'

const START = Date.UTC(2026, 10, 15)
const INTERVAL_MS = 100

export async function demoRecording(scenario: string, seconds: number): Promise<string> {
  const options = { demoScenario: scenario }
  const source = await demo.open({ root: '/', env: {}, intervalMs: INTERVAL_MS, options, log: () => undefined, now: () => START })
  if (source === null) throw new Error('the demo source did not open')
  const lines = { gpu_devices: [] as object[], gpu_metrics: [] as object[], training_metrics: [] as object[] }
  const infos = new Map<number, ProcessInfo>()
  for (let tick = 0; tick * INTERVAL_MS < seconds * 1000; tick++) {
    const at = START + tick * INTERVAL_MS
    const samples = await source.read({ at, monotonicMs: tick * INTERVAL_MS, tick })
    const devices = source.devices()
    if (tick === 0) lines.gpu_devices.push(...devices.map((device) => deviceRecord(device, at)))
    for (const sample of samples) if (sample.kind === 'host') for (const info of sample.processes) infos.set(info.pid, info)
    for (const sample of samples) {
      if (sample.kind === 'step') lines.training_metrics.push(stepRecord(sample))
      if (sample.kind !== 'gpu') continue
      const processes = (sample.processes ?? []).map((one) => ({ ...one, gpu: sample.gpu, info: infos.get(one.pid) ?? null }))
      const info = devices.find((device) => device.id === sample.gpu)
      lines.gpu_metrics.push(gpuRecord(sample, info, processes))
    }
  }
  await source.close()
  const folder = join(temporaryFolder(), scenario)
  mkdirSync(folder)
  for (const [name, records] of Object.entries(lines))
    writeFileSync(join(folder, `${name}_20261115_000000.jsonl`), records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  return folder
}
