/** Data for tests: a run, a source, a card, a process … with what the test wants different. */

import type { AlertView } from './alert-contract.ts'
import { nothingKnown } from './fields/field.ts'
import { PROCESS_SHARES } from './fields/process.ts'
import type { Finding, FindingSubject, GpuInfo, GpuProcess, GpuSample, Run, SourceHealth } from './model.ts'
import { NO_FACTS, NO_READINGS } from './record.ts'

export function runWith(parts: Partial<Run> = {}): Run {
  return {
    id: 'r',
    name: 'r',
    host: null,
    user: null,
    pid: null,
    gpus: [],
    worldSize: null,
    totalSteps: null,
    startedAt: 0,
    endedAt: null,
    outcome: null,
    ending: null,
    provenance: 'live',
    ...parts,
  }
}

/** A source that works, last read at `at`. */
export function healthWith(at: number, parts: Partial<SourceHealth> = {}): SourceHealth {
  return {
    source: 'nvidia',
    state: 'ok',
    since: at,
    message: null,
    provenance: 'live',
    lastSampleAt: at,
    samples: 1,
    skippedTicks: 0,
    restarts: 0,
    nextStartAt: null,
    pid: 1,
    intervalMs: 1000,
    deadlineMs: 5000,
    cpuSeconds: 0,
    residentBytes: null,
    readMs: 1,
    ...parts,
  }
}

/** A data center card of 700 W that reports its limits. */
export function cardWith(index: number, parts: Partial<GpuInfo> = {}): GpuInfo {
  return {
    id: `GPU-${index}`,
    index,
    label: String(index),
    vendor: 'nvidia',
    provenance: 'live',
    ...NO_FACTS,
    name: 'NVIDIA H100 80GB HBM3',
    minor: index,
    driverVersion: '580.65.06',
    cudaVersion: '13.0',
    architecture: 'Hopper',
    computeCapability: '9.0',
    computeMode: 0,
    memoryTotalBytes: 80 * 1024 ** 3,
    powerLimitWatts: 700,
    powerLimitEnforcedWatts: 700,
    powerLimitDefaultWatts: 700,
    powerLimitMinWatts: 200,
    powerLimitMaxWatts: 700,
    smClockMaxHertz: 1_980_000_000,
    memoryClockMaxHertz: 2_619_000_000,
    temperatureSlowdownCelsius: 87,
    temperatureShutdownCelsius: 92,
    temperatureMaxCelsius: 85,
    memoryTemperatureMaxCelsius: 95,
    pcieGenerationMax: 5,
    pcieWidthMax: 16,
    migMode: 'disabled',
    unifiedMemory: false,
    unavailable: {},
    ...parts,
  }
}

export function processWith(pid: number, parts: Partial<GpuProcess> = {}): GpuProcess {
  return { pid, type: 'compute', memoryUsedBytes: null, ...nothingKnown(PROCESS_SHARES), ...parts }
}

/** Nothing is known but that the GPU works. */
export function sampleWith(gpu: string, at: number, parts: Partial<GpuSample> = {}): GpuSample {
  return { ...NO_READINGS, kind: 'gpu', at, gpu, state: 'ok', stateReason: null, slowAt: null, processes: [], ...parts }
}

export const NO_SUBJECT: FindingSubject = { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }

export type FindingParts = Partial<Omit<Finding, 'subject'>> & { readonly subject?: Partial<FindingSubject> }

/** A finding with nothing but what is given. */
export function findingWith(parts: FindingParts = {}): Finding {
  return {
    fingerprint: 'f',
    detector: 'oom',
    provenance: 'live',
    severity: 'warning',
    state: 'active',
    at: 0,
    since: parts.at ?? 0,
    message: '',
    evidence: {},
    confidence: 0.9,
    advice: [],
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
    riskLevel: null,
    ...parts,
    subject: { ...NO_SUBJECT, ...parts.subject },
  }
}

/** The alert of a finding, as it fires. */
export function alertWith(finding: Finding, parts: Partial<AlertView> = {}): AlertView {
  return {
    fingerprint: finding.fingerprint,
    finding,
    state: 'firing',
    firedAt: finding.at,
    resolvedAt: null,
    flapping: false,
    simulated: false,
    acknowledged: null,
    mutedBy: null,
    silence: null,
    told: [],
    waiting: [],
    gpuLabel: null,
    unconfirmed: false,
    ...parts,
  }
}
