/** What the other lines of a recording say: the inverse of hostRecord, eventRecord, stepRecord and deviceRecord. */
import type { GpuEvent, GpuInfo, HostSample, MigInstance, Provenance, TrainingStep, Vendor } from '../model.ts'
import { Fields, type LineInput, type Parsed, parseObject, parseTimestamp } from './json.ts'

export interface DeviceLine {
  readonly kind: 'device'
  readonly at: number
  readonly device: GpuInfo
}

export function parseHostLine(line: LineInput): Parsed<HostSample> {
  const record = parseObject(line)
  if (typeof record === 'string') return record
  const at = parseTimestamp(record.timestamp)
  if (at === null) return 'no_timestamp'
  const fields = new Fields(record)
  const sample: HostSample = {
    kind: 'host',
    at,
    hostname: fields.text('hostname') ?? 'recording',
    cpuRatio: fields.ratio('cpu_percent'),
    cpuCount: fields.finite('cpu_count'),
    load1: fields.finite('load_1'),
    load5: fields.finite('load_5'),
    load15: fields.finite('load_15'),
    memoryTotalBytes: fields.bytes('ram_total_mb'),
    memoryUsedBytes: fields.bytes('ram_used_mb'),
    memoryAvailableBytes: fields.bytes('ram_available_mb'),
    swapTotalBytes: fields.bytes('swap_total_mb'),
    swapUsedBytes: fields.bytes('swap_used_mb'),
    diskTotalBytes: fields.bytes('disk_total_mb'),
    diskFreeBytes: fields.bytes('disk_free_mb'),
    processes: [],
    processesReason: fields.text('processes_reason'),
  }
  return fields.bad ? 'wrong_type' : sample
}

const EVENTS: readonly GpuEvent['event'][] = [
  'xid',
  'ecc_corrected',
  'ecc_uncorrected',
  'gpu_unavailable',
  'recovery_action',
  'lost',
  'recovered',
  'log_gap',
]

export function parseEventLine(line: LineInput): Parsed<GpuEvent> {
  const record = parseObject(line)
  if (typeof record === 'string') return record
  const at = parseTimestamp(record.timestamp)
  if (at === null) return 'no_timestamp'
  const fields = new Fields(record)
  const event: GpuEvent = {
    kind: 'event',
    at,
    gpu: fields.text('gpu_uuid'),
    event: fields.choice('event', EVENTS, null),
    code: fields.finite('code') ?? fields.finite('dropped'),
    message: fields.text('message') ?? fields.text('reason') ?? '',
    origin: fields.text('origin') ?? 'recording',
  }
  return fields.bad ? 'wrong_type' : event
}

/** `run` is the name of a run whose lines do not tell theirs. */
export function parseStepLine(line: LineInput, run = 'recording'): Parsed<TrainingStep> {
  const record = parseObject(line)
  if (typeof record === 'string') return record
  const at = parseTimestamp(record.timestamp)
  if (at === null) return 'no_timestamp'
  const fields = new Fields(record)
  const step: TrainingStep = {
    kind: 'step',
    at,
    run: fields.text('run') ?? run,
    rank: fields.finite('rank') ?? 0,
    step: fields.required('step'),
    epoch: fields.number('epoch'),
    loss: fields.number('loss'),
    learningRate: fields.number('learning_rate'),
    gradientNorm: fields.number('gradient_norm'),
    throughputPerSecond: fields.number('throughput_samples_per_sec'),
    stepSeconds: fields.number('step_duration_seconds'),
    memoryAllocatedBytes: fields.bytes('memory_allocated_mb'),
    memoryReservedBytes: fields.bytes('memory_reserved_mb'),
    memoryActiveBytes: fields.bytes('memory_active_mb'),
    memoryInactiveSplitBytes: fields.bytes('memory_inactive_split_mb'),
    memoryPeakAllocatedBytes: fields.bytes('memory_peak_allocated_mb'),
    memoryPeakReservedBytes: fields.bytes('memory_peak_reserved_mb'),
    allocRetries: fields.finite('num_alloc_retries'),
    oomCount: fields.finite('num_ooms'),
    phaseSeconds: fields.numbers('phase_seconds'),
    custom: fields.numbers('custom'),
  }
  return fields.bad ? 'wrong_type' : step
}

const VENDORS: readonly Vendor[] = ['nvidia', 'amd']
const MIG_MODES = ['enabled', 'disabled'] as const
const PROVENANCES: readonly Provenance[] = ['live', 'simulated', 'replay']

export function parseDeviceLine(line: LineInput): Parsed<DeviceLine> {
  const record = parseObject(line)
  if (typeof record === 'string') return record
  const at = parseTimestamp(record.timestamp)
  if (at === null) return 'no_timestamp'
  const fields = new Fields(record)
  const index = fields.required('index')
  const device: GpuInfo = {
    id: fields.requiredText('id'),
    index,
    label: fields.text('label') ?? String(index),
    vendor: fields.choice('vendor', VENDORS, 'nvidia'),
    provenance: fields.choice('provenance', PROVENANCES, 'live'),
    name: fields.text('name'),
    pciBusId: fields.text('pciBusId'),
    minor: fields.finite('minor'),
    serial: fields.text('serial'),
    driverVersion: fields.text('driverVersion'),
    cudaVersion: fields.text('cudaVersion'),
    libraryVersion: fields.text('libraryVersion'),
    architecture: fields.text('architecture'),
    computeCapability: fields.text('computeCapability'),
    vbiosVersion: fields.text('vbiosVersion'),
    computeMode: fields.finite('computeMode'),
    memoryTotalBytes: fields.finite('memoryTotalBytes'),
    powerLimitWatts: fields.finite('powerLimitWatts'),
    powerLimitEnforcedWatts: fields.finite('powerLimitEnforcedWatts'),
    powerLimitDefaultWatts: fields.finite('powerLimitDefaultWatts'),
    powerLimitMinWatts: fields.finite('powerLimitMinWatts'),
    powerLimitMaxWatts: fields.finite('powerLimitMaxWatts'),
    smClockMaxHertz: fields.finite('smClockMaxHertz'),
    memoryClockMaxHertz: fields.finite('memoryClockMaxHertz'),
    temperatureSlowdownCelsius: fields.finite('temperatureSlowdownCelsius'),
    temperatureShutdownCelsius: fields.finite('temperatureShutdownCelsius'),
    temperatureMaxCelsius: fields.finite('temperatureMaxCelsius'),
    memoryTemperatureMaxCelsius: fields.finite('memoryTemperatureMaxCelsius'),
    pcieGenerationMax: fields.finite('pcieGenerationMax'),
    pcieWidthMax: fields.finite('pcieWidthMax'),
    migMode: record.migMode === null || record.migMode === undefined ? null : fields.choice('migMode', MIG_MODES, null),
    mig: readMig(fields),
    unifiedMemory: record.unifiedMemory === true,
    unavailable: readTexts(fields),
  }
  return fields.bad ? 'wrong_type' : { kind: 'device', at, device }
}

function readMig(fields: Fields): MigInstance | null {
  const object = fields.object('mig')
  if (object === null) return null
  const inner = new Fields(object)
  const mig: MigInstance = {
    parentId: inner.requiredText('parentId'),
    gpuInstanceId: inner.required('gpuInstanceId'),
    computeInstanceId: inner.finite('computeInstanceId'),
    profile: inner.text('profile'),
  }
  if (inner.bad) fields.bad = true
  return mig
}

function readTexts(fields: Fields): Readonly<Record<string, string>> {
  const entries = Object.entries(fields.object('unavailable') ?? {})
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
