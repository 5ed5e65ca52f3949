/** Screens to draw in tests: from recordings, and made up where no recording has the case. */

import { Hub } from '../agent/hub.ts'
import { SILENT_LOG } from '../agent/one-look.ts'
import { State } from '../agent/state.ts'
import { ledgerOf } from '../core/memory/ledger.ts'
import { cardWith, findingWith, healthWith, sampleWith } from '../core/model.fixture.ts'
import type { Finding, GpuInfo, GpuSample, HostSample, ProcessInfo, ProcessView, TrainingStep } from '../core/model.ts'
import { NO_FIGURES, NO_HOST_READINGS } from '../core/record.ts'
import { openRecording } from '../core/recording/recording.ts'
import { createEngine } from '../detectors/engine.ts'
import { detectors } from '../detectors/index.ts'
import { LiveState } from './live-state.ts'

export const AT = 1_760_000_000_000

export function emptyState(at: () => number = () => AT): LiveState {
  const state = new LiveState({ now: at, devices: null, intervalMs: 1000, ledger: (question) => ledgerOf(question)?.entries ?? null })
  state.hostname = 'node7'
  state.origin = 'sampling here'
  return state
}

/** Plays a recording up to `seconds` after its beginning. */
export async function recordedState(path: string, seconds: number): Promise<LiveState> {
  let now = 0
  const state = emptyState(() => now)
  const known = new State({
    now: () => now,
    health: () => [],
    sinks: () => [],
    self: () => ({ version: '', startedAt: 0, runId: '', pid: 1, cpuSeconds: 0, residentBytes: 0 }),
    devices: null,
  })
  const hub = new Hub({ state: known, log: SILENT_LOG, onProcesses: () => undefined })
  const engine = createEngine({ kinds: detectors, hostname: 'node7' })
  hub.addSink({
    name: 'screen',
    accept: (event) => {
      state.accept(event)
      for (const finding of engine.accept(event)) state.accept({ type: 'finding', finding })
    },
  })
  let firstAt: number | null = null
  let last: object | null = null
  for await (const item of await openRecording(path)) {
    firstAt ??= item.at
    if (item.at > firstAt + seconds * 1000) break
    now = item.at
    if (item.devices !== last) hub.receiveDevices('replay', item.devices)
    last = item.devices
    hub.receive({ source: 'replay', provenance: 'replay', at: item.at, samples: item.samples })
  }
  state.replay = { at: now, firstAt: firstAt ?? 0, lastAt: null, speed: 1, state: 'playing' }
  return state
}

export function gpuInfo(index: number, more: Partial<GpuInfo> = {}): GpuInfo {
  return cardWith(index, more)
}

export function gpuSample(gpu: string, more: Partial<GpuSample> = {}): GpuSample {
  return sampleWith(gpu, AT, {
    utilizationRatio: 0.93,
    memoryTotalBytes: 80 * 1024 ** 3,
    memoryUsedBytes: 57 * 1024 ** 3,
    memoryReservedBytes: 0.5 * 1024 ** 3,
    temperatureCelsius: 62,
    powerWatts: 412,
    smClockHertz: 1755e6,
    performanceState: 0,
    clockEventReasons: 4,
    ...more,
  })
}

/** Nothing can be read but that it is there. */
export function bareSample(gpu: string): GpuSample {
  return sampleWith(gpu, AT, { processes: null })
}

export function processView(pid: number, gpu: string, info: Partial<ProcessInfo> | null, more: Partial<ProcessView> = {}): ProcessView {
  return {
    pid,
    gpu,
    type: 'compute',
    memoryUsedBytes: 10 * 1024 ** 3,
    smRatio: 0.5,
    memoryRatio: null,
    encoderRatio: null,
    decoderRatio: null,
    info:
      info === null
        ? null
        : {
            pid,
            parentPid: 1,
            startedAt: AT - 3_600_000,
            user: 'ada',
            uid: 1000,
            name: 'python',
            executable: '/usr/bin/python3',
            command: ['python', 'train.py'],
            state: 'R',
            cpuRatio: 1.2,
            residentBytes: 4 * 1024 ** 3,
            container: null,
            pod: null,
            slurmJob: null,
            ...info,
          },
    ...more,
  }
}

export function hostSample(more: Partial<HostSample> = {}): HostSample {
  return {
    kind: 'host',
    at: AT,
    hostname: 'node7',
    ...NO_HOST_READINGS,
    cpuRatio: 0.23,
    cpuCount: 64,
    load1: 14.2,
    load5: 12,
    load15: 11,
    memoryTotalBytes: 512 * 1024 ** 3,
    memoryUsedBytes: 112 * 1024 ** 3,
    memoryAvailableBytes: 400 * 1024 ** 3,
    swapTotalBytes: 0,
    swapUsedBytes: 0,
    diskTotalBytes: 1024 ** 4,
    diskFreeBytes: 0.5 * 1024 ** 4,
    processes: [],
    processesReason: null,
    ...more,
  }
}

export function trainingStep(step: number, more: Partial<TrainingStep> = {}): TrainingStep {
  return {
    kind: 'step',
    at: AT - 60_000 + step * 400,
    run: 'bert-large',
    rank: 0,
    step,
    ...NO_FIGURES,
    epoch: step / 1000,
    loss: 2 / step,
    learningRate: 3e-4,
    gradientNorm: 1.25,
    throughputPerSecond: 812,
    stepSeconds: 0.4,
    memoryAllocatedBytes: 41 * 1024 ** 3,
    memoryReservedBytes: 44 * 1024 ** 3,
    memoryActiveBytes: 41 * 1024 ** 3,
    memoryInactiveSplitBytes: 0,
    memoryPeakAllocatedBytes: 60 * 1024 ** 3,
    allocRetries: 0,
    oomCount: 0,
    phaseSeconds: null,
    custom: null,
    ...more,
  }
}

export function finding(detector: string, more: Partial<Finding> & { readonly pid?: number; readonly gpu?: string } = {}): Finding {
  const { pid = null, gpu = null, ...rest } = more
  return findingWith({
    fingerprint: `${detector}|${gpu}|${pid}`,
    detector,
    at: AT,
    since: AT - 120_000,
    message: `something about ${detector}`,
    ...rest,
    subject: { host: 'node7', gpu, pid, ...rest.subject },
  })
}

export interface World {
  readonly infos: readonly GpuInfo[]
  readonly samples: readonly GpuSample[]
  readonly processes?: readonly ProcessView[]
  readonly host?: HostSample | null
  readonly findings?: readonly Finding[]
  readonly steps?: readonly TrainingStep[]
}

export function worldState({ infos, samples, processes = [], host = hostSample(), findings = [], steps = [] }: World): LiveState {
  const state = emptyState()
  state.accept({ type: 'devices', devices: infos })
  state.accept({
    type: 'health',
    health: [healthWith(AT, { since: AT - 60_000, samples: 60, pid: 100, cpuSeconds: 1, residentBytes: 5e7 })],
  })
  state.accept({ type: 'tick', tick: { seq: 1, at: AT, source: 'nvidia', provenance: 'live', gpus: samples, processes, host, events: [] } })
  if (steps.length > 0) state.accept({ type: 'steps', steps, provenance: 'live' })
  for (const one of findings) state.accept({ type: 'finding', finding: one })
  return state
}
