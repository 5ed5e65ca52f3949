/** What every sink promises, and the made-up events that the tests of this room share. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HubEvent, Log, Sink } from '../core/kinds.ts'
import { findingWith } from '../core/model.fixture.ts'
import type { Finding, GpuInfo, GpuReadings, GpuSample, HostSample, TrainingStep } from '../core/model.ts'
import { NO_FACTS, NO_FIGURES, NO_HOST_READINGS, NO_READINGS } from '../core/record.ts'
import type { StoreOptions } from './store.ts'

export const NOON = Date.UTC(2025, 6, 30, 12, 0, 0)
export const GPU = 'GPU-00000000-0000-0000-0000-000000000000'

/** The defaults, but nothing is written before it is asked for. */
export const SETTINGS: StoreOptions['settings'] = {
  'log.rotate_mb': 64,
  'log.rotate_hours': 24,
  'log.compress': true,
  'log.keep_days': 30,
  'log.keep_total_mb': 2048,
  'log.batch_samples': 60,
  'log.batch_seconds': 3600,
  'log.buffer_mb': 8,
}

export function describeSink(name: string, create: () => Promise<Sink>): void {
  describe(`sink contract: ${name}`, () => {
    it('takes every kind of event, counts nothing as dropped, and closes twice', async () => {
      const sink = await create()
      expect(sink.name).toBe(name)
      for (const event of everyEvent()) expect(sink.accept(event)).toBeUndefined()
      expect(sink.dropped?.() ?? { count: 0, reason: null }).toEqual({ count: 0, reason: null })
      await sink.close?.()
      await sink.close?.()
    })
  })
}

export function gpuInfo(id = GPU, index = 0): GpuInfo {
  const known = { name: 'Test GPU', driverVersion: '580.0', memoryTotalBytes: 24 * 2 ** 30 }
  return { ...NO_FACTS, ...known, id, index, label: String(index), vendor: 'nvidia', provenance: 'live' }
}

export function gpuSample(at: number, readings: Partial<GpuReadings> = {}, gpu = GPU): GpuSample {
  return { kind: 'gpu', at, gpu, state: 'ok', stateReason: null, slowAt: null, processes: [], ...NO_READINGS, ...readings }
}

export function tickEvent(at: number, gpus: readonly GpuSample[], host: HostSample | null = null): HubEvent {
  return { type: 'tick', tick: { seq: 1, at, source: 'test', provenance: 'live', gpus, processes: [], host, events: [] } }
}

export function hostSample(at: number): HostSample {
  const memory = { memoryTotalBytes: 2 ** 35, memoryUsedBytes: 2 ** 33, memoryAvailableBytes: 2 ** 34 }
  const disk = { swapTotalBytes: 0, swapUsedBytes: 0, diskTotalBytes: 2 ** 40, diskFreeBytes: 2 ** 39 }
  const cpu = { cpuRatio: 0.5, cpuCount: 8, load1: 1, load5: 1, load15: 1 }
  return { kind: 'host', at, hostname: 'box', ...NO_HOST_READINGS, ...cpu, ...memory, ...disk, processes: [], processesReason: null }
}

export function trainingStep(at: number, step: number, loss: number): TrainingStep {
  return { kind: 'step', at, run: 'run', rank: 0, step, ...NO_FIGURES, loss, phaseSeconds: null, custom: null }
}

export function finding(at: number): Finding {
  return findingWith({
    fingerprint: 'oom/GPU-0/4242',
    subject: { host: 'box', gpu: GPU, gpuIndex: 0, pid: 4242, user: 'ada', run: 'run', rank: 0 },
    severity: 'critical',
    at,
    since: at - 60_000,
    message: 'out of memory in about 5 minutes',
    evidence: { slope: Number.POSITIVE_INFINITY, used_mb: 23_000 },
    advice: ['lower the batch size'],
    predictedAt: at + 300_000,
    predictedEarliestAt: at + 200_000,
    riskLevel: 'high',
  })
}

function everyEvent(): HubEvent[] {
  const run = { id: 'run', name: 'run', host: null, user: null, pid: null, gpus: [], worldSize: null, totalSteps: null }
  return [
    { type: 'devices', devices: [gpuInfo()] },
    tickEvent(NOON, [gpuSample(NOON, { utilizationRatio: 0.5 })], hostSample(NOON)),
    { type: 'health', health: [] },
    { type: 'finding', finding: finding(NOON) },
    { type: 'run', run: { ...run, startedAt: NOON, endedAt: null, outcome: null, ending: null, provenance: 'live' } },
    { type: 'steps', steps: [trainingStep(NOON, 1, Number.NaN)], provenance: 'live' },
  ]
}

export interface RecordedLog extends Log {
  readonly messages: { readonly level: string; readonly message: string }[]
}

export function recordedLog(): RecordedLog {
  const messages: { level: string; message: string }[] = []
  const at = (level: string) => (_: object, message: string) => void messages.push({ level, message })
  const log: RecordedLog = { messages, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log }
  return log
}

export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'gpuwarden-store-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/** Names of the files of one stream, in order. */
export async function filesOf(dir: string, stream: string): Promise<string[]> {
  return (await readdir(dir)).filter((name) => name.startsWith(`${stream}_`)).sort()
}

/** The text lines of a stream over all of its files, compressed ones too. */
export async function textLines(dir: string, stream: string): Promise<string[]> {
  const texts: string[] = []
  for (const name of await filesOf(dir, stream)) {
    const bytes = await readFile(join(dir, name))
    texts.push((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString())
  }
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''))
}

export async function records(dir: string, stream: string): Promise<Record<string, unknown>[]> {
  return (await textLines(dir, stream)).map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** The lines of a stream that are JSON, and how many are not. */
export async function wholeAndTorn(dir: string, stream: string): Promise<{ whole: Record<string, unknown>[]; torn: number }> {
  const whole: Record<string, unknown>[] = []
  let torn = 0
  for (const line of await textLines(dir, stream)) {
    try {
      whole.push(JSON.parse(line) as Record<string, unknown>)
    } catch {
      torn += 1
    }
  }
  return { whole, torn }
}

/** Waits for something that happens in the background; fails after ten seconds. */
export async function eventually<T>(probe: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const value = await probe()
    if (value) return value
    if (Date.now() > deadline) throw new Error('did not happen within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
