/** Inputs for detectors' tests: a healthy GPU, process, step … with what the test wants different. */
import type { DetectorDeclaration, DetectorInput } from '../core/detector-contract.ts'
import { cardWith, healthWith, processWith, runWith, sampleWith } from '../core/model.fixture.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuProcess,
  GpuSample,
  HostSample,
  ProcessInfo,
  ProcessView,
  Run,
  SourceHealth,
  TrainingStep,
} from '../core/model.ts'
import { NO_FIGURES, NO_HOST_READINGS, NO_READINGS } from '../core/record.ts'

export const GIB = 1024 ** 3
export const START = 1_760_000_000_000
export const GPU = 'GPU-0'

/** The declaration of a detector that exists only in a test. */
export const PRETEND_DETECTOR: Omit<DetectorDeclaration, 'name'> = {
  about: 'Exists only in a test.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['device', 'gpu', 'host', 'event', 'step', 'run', 'health'],
}

export function device(overrides: Partial<GpuInfo> = {}): DetectorInput {
  const card = cardWith(0, {
    id: GPU,
    provenance: 'simulated',
    name: 'Test GPU',
    pciBusId: '00000000:8D:00.0',
    temperatureSlowdownCelsius: 92,
    temperatureShutdownCelsius: 97,
    temperatureMaxCelsius: 87,
    ...overrides,
  })
  return { type: 'device', device: card }
}

export function process(pid: number, overrides: Partial<GpuProcess> = {}): GpuProcess {
  return processWith(pid, { memoryUsedBytes: 20 * GIB, ...overrides })
}

export function processInfo(pid: number, overrides: Partial<ProcessInfo> = {}): ProcessInfo {
  return {
    pid,
    parentPid: 1,
    startedAt: START,
    user: 'alice',
    uid: 1000,
    name: 'python',
    executable: '/usr/bin/python3.12',
    command: ['python', 'train.py'],
    state: 'S',
    cpuRatio: 1,
    residentBytes: 4 * GIB,
    container: null,
    pod: null,
    slurmJob: null,
    ...overrides,
  }
}

/** A sample of a busy, healthy GPU with one process of 20 GiB; `infos` tells who processes are. */
export function gpu(at: number, overrides: Partial<GpuSample> = {}, infos: readonly ProcessInfo[] = []): DetectorInput {
  const sample = sampleWith(GPU, at, {
    slowAt: at,
    utilizationRatio: 0.9,
    memoryUtilizationRatio: 0.4,
    memoryTotalBytes: 80 * GIB,
    memoryUsedBytes: 20 * GIB,
    memoryFreeBytes: 60 * GIB,
    memoryReservedBytes: 0,
    temperatureCelsius: 60,
    memoryTemperatureCelsius: 65,
    powerWatts: 400,
    clockEventReasons: 0,
    eccCorrectedVolatileCount: 0,
    eccUncorrectedVolatileCount: 0,
    eccCorrectedAggregateCount: 0,
    eccUncorrectedAggregateCount: 0,
    remappedCorrectableRows: 0,
    remappedUncorrectableRows: 0,
    remapPending: 0,
    remapFailure: 0,
    retiredPagesPending: 0,
    recoveryAction: 0,
    processes: [process(1001)],
    ...overrides,
  })
  return { type: 'gpu', sample, processes: views(sample, infos) }
}

/** The same as `gpu` with every reading null, as a card gives that cannot tell. */
export function silentGpu(at: number, overrides: Partial<GpuSample> = {}): DetectorInput {
  return gpu(at, { ...NO_READINGS, processes: null, slowAt: null, ...overrides })
}

function views(sample: GpuSample, infos: readonly ProcessInfo[]): ProcessView[] {
  return (sample.processes ?? []).map((one) => ({ ...one, gpu: sample.gpu, info: infos.find((info) => info.pid === one.pid) ?? null }))
}

export function host(at: number, overrides: Partial<HostSample> = {}): DetectorInput {
  return {
    type: 'host',
    sample: {
      kind: 'host',
      at,
      hostname: 'node-1',
      ...NO_HOST_READINGS,
      cpuRatio: 0.2,
      cpuCount: 16,
      load1: 2,
      load5: 2,
      load15: 2,
      memoryTotalBytes: 256 * GIB,
      memoryUsedBytes: 64 * GIB,
      memoryAvailableBytes: 192 * GIB,
      swapTotalBytes: 0,
      swapUsedBytes: 0,
      diskTotalBytes: 1000 * GIB,
      diskFreeBytes: 500 * GIB,
      processes: [],
      processesReason: null,
      ...overrides,
    },
  }
}

export function step(at: number, number: number, overrides: Partial<TrainingStep> = {}): DetectorInput {
  return {
    type: 'step',
    step: {
      kind: 'step',
      at,
      run: 'run-1',
      rank: 0,
      step: number,
      ...NO_FIGURES,
      loss: 2,
      learningRate: 1e-4,
      gradientNorm: 0.5,
      throughputPerSecond: 100,
      stepSeconds: 1,
      memoryAllocatedBytes: 10 * GIB,
      memoryReservedBytes: 15 * GIB,
      memoryActiveBytes: 10 * GIB,
      memoryInactiveSplitBytes: 0,
      memoryPeakAllocatedBytes: 14 * GIB,
      allocRetries: 0,
      oomCount: 0,
      phaseSeconds: null,
      custom: null,
      ...overrides,
    },
  }
}

export function run(overrides: Partial<Run> = {}): DetectorInput {
  return { type: 'run', run: runWith({ id: 'run-1', name: 'run-1', startedAt: START, ...overrides }) }
}

export function event(at: number, overrides: Partial<GpuEvent> = {}): DetectorInput {
  return {
    type: 'event',
    event: { kind: 'event', at, gpu: GPU, event: 'xid', code: 79, message: 'fell off the bus', origin: 'nvml', ...overrides },
  }
}

export function health(at: number, overrides: Partial<SourceHealth> = {}): DetectorInput {
  return { type: 'health', at, health: healthWith(at, { pid: 4242, ...overrides }) }
}

/** The time an input carries; null for those that carry none. */
export function timeOf(input: DetectorInput): number | null {
  switch (input.type) {
    case 'gpu':
    case 'host':
      return input.sample.at
    case 'event':
      return input.event.at
    case 'step':
      return input.step.at
    case 'health':
      return input.at
    default:
      return null
  }
}

/** Findings that would wake somebody. */
export function alarms(findings: readonly Finding[]): Finding[] {
  return findings.filter((finding) => finding.severity !== 'info' && finding.state === 'active')
}
