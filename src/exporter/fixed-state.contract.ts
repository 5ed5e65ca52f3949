/** A hand-made moment in the life of an agent, for the golden file: every kind of GPU, state and nasty name once. */

import type { AgentState, GpuView } from '../core/kinds.ts'
import { cardWith, findingWith, healthWith, processWith } from '../core/model.fixture.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuLink,
  GpuReadings,
  GpuSample,
  HostSample,
  ProcessView,
  SourceHealth,
  TrainingStep,
} from '../core/model.ts'
import { NO_FACTS, NO_FIGURES, NO_HOST_READINGS, NO_READINGS } from '../core/record.ts'
import type { RunTime } from '../core/run-time.ts'
import type { AlertFigures } from './alerts.ts'
import type { MetricNaming } from './exporter.ts'
import { TrainingMetrics } from './training-metrics.ts'
import type { UserFigures } from './usage.ts'
import { XidCounts } from './xid-counts.ts'

export const NOW = 1_760_000_000_000
const GIB = 1024 ** 3

export function gpuInfo(overrides: Partial<GpuInfo>): GpuInfo {
  const id = 'GPU-00000000-0000-0000-0000-000000000000'
  return { ...NO_FACTS, id, index: 0, label: '0', vendor: 'nvidia', provenance: 'live', ...overrides }
}

export function gpuSample(overrides: Partial<GpuSample>): GpuSample {
  return { ...NO_READINGS, kind: 'gpu', at: NOW - 250, gpu: '', state: 'ok', stateReason: null, slowAt: null, processes: [], ...overrides }
}

export function gpuView(info: GpuInfo, sample: Partial<GpuSample> | null, view: Partial<GpuView> = {}): GpuView {
  return { info, sample: sample === null ? null : gpuSample({ gpu: info.id, ...sample }), ageMs: 250, live: true, ...view }
}

export function processView(overrides: Partial<ProcessView> & { readonly gpu: string; readonly pid: number }): ProcessView {
  return { ...processWith(overrides.pid), info: null, ...overrides }
}

export function processInfo(pid: number, user: string | null, name: string | null): NonNullable<ProcessView['info']> {
  return {
    pid,
    parentPid: 1,
    startedAt: NOW - 3_600_000,
    user,
    uid: 1000,
    name,
    executable: null,
    command: null,
    state: 'R',
    cpuRatio: null,
    residentBytes: null,
    container: null,
    pod: null,
    slurmJob: null,
  }
}

export function sourceHealth(overrides: Partial<SourceHealth>): SourceHealth {
  return healthWith(NOW - 250, {
    since: NOW - 60_000,
    samples: 600,
    skippedTicks: 2,
    restarts: 1,
    pid: 4711,
    cpuSeconds: 1.25,
    residentBytes: 28_311_552,
    readMs: 1.875,
    ...overrides,
  })
}

export function finding(overrides: Partial<Finding>): Finding {
  return findingWith({ at: NOW, confidence: 1, ...overrides })
}

export function trainingStep(overrides: Partial<TrainingStep>): TrainingStep {
  return {
    kind: 'step',
    at: NOW - 1000,
    run: 'run-1',
    rank: 0,
    step: 1,
    ...NO_FIGURES,
    phaseSeconds: null,
    custom: null,
    ...overrides,
  }
}

/** An agent that knows nothing yet, and what a test gives it. */
export function agentState(overrides: Partial<AgentState> = {}): AgentState {
  return {
    hostname: 'node-7',
    now: () => NOW,
    gpus: () => [],
    processes: () => [],
    host: () => null,
    health: () => [],
    sinks: () => [],
    self: () => ({ version: '0.1.0', startedAt: NOW - 60_000, runId: 'r', pid: 1, cpuSeconds: 0.5, residentBytes: 69_206_016 }),
    lastXid: () => new Map(),
    events: () => [],
    findings: () => [],
    ...overrides,
  }
}

/** Every reading there is, each with a value of its own, so that a swapped pair shows. */
export const FULL_READINGS: GpuReadings = {
  ...NO_READINGS,
  utilizationRatio: 0.29,
  memoryUtilizationRatio: 0.41,
  memoryTotalBytes: 80 * GIB,
  memoryUsedBytes: 60 * GIB,
  memoryFreeBytes: 19.5 * GIB,
  memoryReservedBytes: 0.5 * GIB,
  temperatureCelsius: 64,
  junctionTemperatureCelsius: 78,
  memoryTemperatureCelsius: 71,
  powerWatts: 612.345,
  energyJoules: 98_765.432,
  fanRatio: 0.65,
  fanRpm: 1487,
  graphicsClockHertz: 1_755_000_000,
  smClockHertz: 1_740_000_000,
  memoryClockHertz: 2_619_000_000,
  videoClockHertz: 1_545_000_000,
  performanceState: 0,
  clockEventReasons: 0x44,
  encoderRatio: 0.01,
  decoderRatio: 0.02,
  pcieGeneration: 5,
  pcieWidth: 16,
  pcieReplayCount: 3,
  pcieTxBytesPerSecond: 111_000_000,
  pcieRxBytesPerSecond: 222_000_000,
  nvlinkTxBytesPerSecond: 333_000_000,
  nvlinkRxBytesPerSecond: 444_000_000,
  xgmiTxBytesPerSecond: 555_000_000,
  xgmiRxBytesPerSecond: 666_000_000,
  xcd0ActiveRatio: 0.5,
  xcd1ActiveRatio: 0.51,
  xcd2ActiveRatio: 0.52,
  xcd3ActiveRatio: 0.53,
  xcd4ActiveRatio: 0.54,
  xcd5ActiveRatio: 0.55,
  xcd6ActiveRatio: 0.56,
  xcd7ActiveRatio: 0.57,
  eccCorrectedVolatileCount: 5,
  eccUncorrectedVolatileCount: 0,
  eccCorrectedAggregateCount: 7,
  eccUncorrectedAggregateCount: 1,
  remappedCorrectableRows: 2,
  remappedUncorrectableRows: 4,
  remapPending: 1,
  remapFailure: 0,
  retiredPagesSingleBit: 6,
  retiredPagesDoubleBit: 8,
  retiredPagesPending: 9,
  recoveryAction: 0,
  fabricState: 3,
  powerViolationSeconds: 12.5,
  thermalViolationSeconds: 0.75,
  graphicsActiveRatio: 0.91,
  smActiveRatio: 0.82,
  smOccupancyRatio: 0.33,
  tensorActiveRatio: 0.44,
  dramActiveRatio: 0.55,
  fp16ActiveRatio: 0.16,
  fp32ActiveRatio: 0.32,
  fp64ActiveRatio: 0.64,
  fabricHealth: 1,
  jpegRatio: 0.03,
  ofaRatio: 0.04,
  temperatureMarginCelsius: -2,
  memoryPowerWatts: 44.89,
  modulePowerWatts: 812.5,
  bar1UsedBytes: 3 * GIB,
  nvlinkActiveCount: 17,
  nvlinkReplayCount: 10,
  nvlinkRecoveryCount: 11,
  nvlinkCrcErrorCount: 12,
  channelRepairPending: 0,
  tpcRepairPending: 1,
  softwareThermalSeconds: 1.25,
  hardwareThermalSeconds: 2.25,
  powerBrakeSeconds: 3.25,
}

const link = (number: number, state: 'active' | 'inactive'): GpuLink => ({
  link: number,
  state,
  version: 4,
  bytesPerSecondMax: 26_562e6,
  replayCount: 101 + number,
  recoveryCount: 201 + number,
  crcErrorCount: 301 + number,
  effectiveErrorCount: 401 + number,
  symbolErrorCount: 501 + number,
})

const H100 = cardWith(0, {
  id: 'GPU-5c2fe1ab-0000-4000-8000-000000000001',
  name: 'NVIDIA "H100"\\80GB\nHBM3\u0007',
  pciBusId: '00000000:8D:00.0',
  serial: '1650924000001',
  driverVersion: '580.159.04',
  vbiosVersion: '96.00.A5.00.03',
  powerLimitEnforcedWatts: 650,
  migMode: 'enabled',
  partNumber: '692-2G520-0282-000',
  gspFirmwareVersion: '580.159.04',
  eccMode: 'enabled',
  eccModePending: 'disabled',
  persistenceMode: 'enabled',
  powerSmoothing: 'disabled',
  confidentialComputing: 'devtools',
  bar1TotalBytes: 128 * GIB,
  fabricCliqueId: 32766,
  nvlinks: [link(0, 'active'), link(1, 'inactive')],
  c2cLinks: [{ ...link(0, 'active'), recoveryCount: null, effectiveErrorCount: null, symbolErrorCount: null }],
})
const LOST = gpuInfo({
  id: 'GPU-5c2fe1ab-0000-4000-8000-000000000002',
  index: 1,
  label: '1',
  name: 'NVIDIA A10',
  minor: 1,
  driverVersion: '580.159.04',
})
const MIG = gpuInfo({
  id: 'MIG-5c2fe1ab-0000-4000-8000-000000000003',
  label: '0:2',
  name: 'NVIDIA H100 MIG 1g.10gb',
  driverVersion: '580.159.04',
  mig: { parentId: H100.id, gpuInstanceId: 9, computeInstanceId: 0, profile: '1g.10gb' },
})
const AMD = gpuInfo({
  id: '0x7d2c5f9a1b3e4c6d',
  index: 2,
  label: '2',
  vendor: 'amd',
  name: 'AMD Instinct MI300X',
  unifiedMemory: true,
  provenance: 'replay',
})

const GPUS: readonly GpuView[] = [
  gpuView(H100, { ...FULL_READINGS, processes: [1, 2, 3, 4].map((pid) => processView({ gpu: H100.id, pid })) }),
  gpuView(LOST, { ...FULL_READINGS, state: 'lost', stateReason: 'GPU is lost' }),
  gpuView(MIG, {
    memoryTotalBytes: 10 * GIB,
    memoryUsedBytes: GIB,
    memoryFreeBytes: 9 * GIB,
    memoryReservedBytes: 0,
    graphicsActiveRatio: 0.5,
    smActiveRatio: 0.25,
    smOccupancyRatio: 0.125,
    tensorActiveRatio: 0.0625,
    pcieTxBytesPerSecond: 1000,
    pcieRxBytesPerSecond: 2000,
  }),
  gpuView(AMD, { utilizationRatio: 1, memoryUsedBytes: 0, temperatureCelsius: 45.5, processes: null }),
]

const PROCESSES: readonly ProcessView[] = [
  processView({ gpu: H100.id, pid: 1, memoryUsedBytes: GIB, info: processInfo(1, 'ada', 'python3') }),
  processView({
    gpu: H100.id,
    pid: 2,
    memoryUsedBytes: 40 * GIB,
    smRatio: 0.75,
    memoryRatio: 0.5,
    info: processInfo(2, 'b"ob', 'tr\\ain\n.py'),
  }),
  processView({ gpu: H100.id, pid: 3, memoryUsedBytes: 2 * GIB, type: 'both', encoderRatio: 0, decoderRatio: 1 }),
  processView({ gpu: H100.id, pid: 4 }),
  processView({ gpu: LOST.id, pid: 5, memoryUsedBytes: GIB }),
  processView({ gpu: MIG.id, pid: 6, memoryUsedBytes: GIB, type: 'graphics', info: processInfo(6, null, null) }),
]

const HOST: HostSample = {
  kind: 'host',
  at: NOW - 500,
  hostname: 'node-7',
  ...NO_HOST_READINGS,
  cpuRatio: 0.125,
  cpuCount: 64,
  load1: 8.5,
  load5: 7.25,
  load15: 6,
  memoryTotalBytes: 512 * GIB,
  memoryUsedBytes: 100 * GIB,
  memoryAvailableBytes: 412 * GIB,
  swapTotalBytes: 0,
  swapUsedBytes: 0,
  diskFreeBytes: 40 * GIB,
  processes: [],
  processesReason: null,
}

function xid(at: number, gpu: string | null, code: number): GpuEvent {
  return { kind: 'event', at, gpu, event: 'xid', code, message: `Xid ${code}`, origin: 'kmsg' }
}

const NOBODY = { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }

/** As the sources have it. */
export const naming: MetricNaming = {
  scopeOf: (vendor, set) => (vendor === 'nvidia' ? 'all' : set === 'dcgm' ? 'shared' : null),
  nodeOf: (vendor, minor) => `${vendor === 'nvidia' ? 'nvidia' : 'card'}${minor}`,
}

export const FIXED_STATE: AgentState = agentState({
  gpus: () => GPUS,
  processes: () => PROCESSES,
  host: () => ({ sample: HOST, ageMs: 500, live: true }),
  health: () => [
    sourceHealth({}),
    sourceHealth({ source: 'host', skippedTicks: 0, restarts: 0 }),
    sourceHealth({
      source: 'amd',
      state: 'not_responding',
      pid: null,
      cpuSeconds: null,
      residentBytes: null,
      lastSampleAt: NOW - 90_000,
      readMs: null,
    }),
  ],
  sinks: () => [
    { name: 'store', dropped: 0, reason: null },
    { name: 'mlflow', dropped: 12, reason: 'connection refused' },
  ],
  events: () => [
    xid(NOW - 50_000, H100.id, 31),
    xid(NOW - 40_000, H100.id, 31),
    xid(NOW - 30_000, LOST.id, 79),
    xid(NOW - 20_000, null, 119),
  ],
  lastXid: () =>
    new Map([
      [H100.id, xid(NOW - 40_000, H100.id, 31)],
      [LOST.id, xid(NOW - 30_000, LOST.id, 79)],
    ]),
  findings: () => [
    finding({ subject: { ...NOBODY, gpu: H100.id }, predictedAt: NOW + 90_000, severity: 'critical' }),
    finding({ subject: { ...NOBODY, gpu: H100.id }, predictedAt: NOW + 120_000 }),
    finding({ subject: { ...NOBODY, run: 'run-1', rank: 0 }, predictedAt: NOW - 5 }),
    finding({ subject: { ...NOBODY, gpu: LOST.id }, predictedAt: NOW + 10_000, severity: 'critical' }),
    finding({ detector: 'leak', subject: { ...NOBODY, gpu: H100.id } }),
    finding({ detector: 'leak', state: 'resolved' }),
  ],
})

export function fixedXids(): XidCounts {
  const xids = new XidCounts()
  xids.accept(FIXED_STATE.events())
  return xids
}

export function fixedTraining(): TrainingMetrics {
  const training = new TrainingMetrics(() => NOW)
  training.acceptRun({
    id: 'run-1',
    name: 'gemma "3n"',
    host: 'node-7',
    user: 'ada',
    pid: 2,
    gpus: [H100.id],
    worldSize: 2,
    totalSteps: null,
    startedAt: NOW - 60_000,
    endedAt: null,
    outcome: null,
    ending: null,
    provenance: 'live',
    model: { parameters: 8e9, activeParameters: 7.5e9, flopsPerToken: null, flopsPerSample: 1e13, computeType: 'bfloat16' },
  })
  training.accept([
    trainingStep({ step: 999, at: NOW - 2000, stepSeconds: 0.2, loss: 0.5, learningRate: 1e-7 }),
    trainingStep({
      step: 1000,
      epoch: 2.5,
      loss: Number.NaN,
      gradientNorm: Number.POSITIVE_INFINITY,
      throughputPerSecond: 32.5,
      stepSeconds: 1,
      memoryAllocatedBytes: 18_000 * 1024 ** 2,
      memoryReservedBytes: 20_000 * 1024 ** 2,
      memoryActiveBytes: 18_500 * 1024 ** 2,
      memoryInactiveSplitBytes: 500 * 1024 ** 2,
      memoryPeakAllocatedBytes: 19_000 * 1024 ** 2,
      memoryPeakReservedBytes: 20_480 * 1024 ** 2,
      allocRetries: 1,
      oomCount: 0,
      phaseSeconds: { forward: 0.25, data_wait: 0.125 },
      custom: { 'val/"acc"': 0.75 },
    }),
    trainingStep({ rank: 1, step: 1000, loss: Number.NEGATIVE_INFINITY, stepSeconds: 100 }),
  ])
  return training
}

/** Of run-1. */
export const FIXED_TIME: RunTime = {
  wallSeconds: 60,
  goodputRatio: 0.75,
  seconds: { productive: 45, startup: 10, data: 3, checkpoint: 0, evaluation: null, repeated: 0, hang: 0, rest: 2 },
}

export const FIXED_ALERTS: AlertFigures = {
  alerts: { pending: 1, firing: 3, resolved: 2, silenced: 1, acknowledged: 0 },
  channels: [
    { channel: 'email', results: { delivered: 7, retried: 12, refused: 1, expired: 0 }, depth: 4, oldestAgeMs: 61_500 },
    { channel: 'webpush', results: { delivered: 0, retried: 0, refused: 0, expired: 0 }, depth: 0, oldestAgeMs: null },
  ],
  fault: null,
  refusedFindings: 0,
  heartbeat: { sent: 5, failed: 1 },
}

export const FIXED_USAGE: readonly UserFigures[] = [
  { user: 'ada', simulated: false, gpuSeconds: 7200.5, busySeconds: 3600.25, idleSeconds: 600, energyJoules: 2_520_000 },
  { user: 'b"ob', simulated: true, gpuSeconds: 60, busySeconds: 0, idleSeconds: 0, energyJoules: 0 },
]
