/**
 * The format of a recording: one JSON object a line, the seeds' names and units.
 * The store writes it, the replay source and `detect` read it, the history takes its field list from it.
 */
import type {
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuReadings,
  GpuSample,
  HostSample,
  ProcessView,
  Provenance,
  Reading,
  TrainingStep,
} from './model.ts'

const MEBIBYTE = 1024 * 1024

type Scale = 'same' | 'percent' | 'mebibytes' | 'megahertz'

export interface Column {
  readonly name: string
  readonly field: GpuField
  readonly scale: Scale
  /** Written even when null: the names that the seeds promise. */
  readonly always?: true
}

/** The order of the numeric columns in a `gpu_metrics` line, after `timestamp` and `gpu_index`. `memory_percent` is derived. */
export const GPU_COLUMNS: readonly Column[] = [
  { name: 'utilization_percent', field: 'utilizationRatio', scale: 'percent', always: true },
  { name: 'memory_used_mb', field: 'memoryUsedBytes', scale: 'mebibytes', always: true },
  { name: 'memory_total_mb', field: 'memoryTotalBytes', scale: 'mebibytes', always: true },
  { name: 'temperature_celsius', field: 'temperatureCelsius', scale: 'same', always: true },
  { name: 'power_draw_watts', field: 'powerWatts', scale: 'same', always: true },
  { name: 'fan_speed_percent', field: 'fanRatio', scale: 'percent', always: true },
  { name: 'memory_free_mb', field: 'memoryFreeBytes', scale: 'mebibytes' },
  { name: 'memory_reserved_by_driver_mb', field: 'memoryReservedBytes', scale: 'mebibytes' },
  { name: 'memory_bandwidth_percent', field: 'memoryUtilizationRatio', scale: 'percent' },
  { name: 'memory_temperature_celsius', field: 'memoryTemperatureCelsius', scale: 'same' },
  { name: 'graphics_clock_mhz', field: 'graphicsClockHertz', scale: 'megahertz' },
  { name: 'sm_clock_mhz', field: 'smClockHertz', scale: 'megahertz' },
  { name: 'memory_clock_mhz', field: 'memoryClockHertz', scale: 'megahertz' },
  { name: 'video_clock_mhz', field: 'videoClockHertz', scale: 'megahertz' },
  { name: 'performance_state', field: 'performanceState', scale: 'same' },
  { name: 'clocks_event_reasons', field: 'clockEventReasons', scale: 'same' },
  { name: 'encoder_percent', field: 'encoderRatio', scale: 'percent' },
  { name: 'decoder_percent', field: 'decoderRatio', scale: 'percent' },
  { name: 'sm_active_percent', field: 'smActiveRatio', scale: 'percent' },
  { name: 'sm_occupancy_percent', field: 'smOccupancyRatio', scale: 'percent' },
  { name: 'tensor_active_percent', field: 'tensorActiveRatio', scale: 'percent' },
  { name: 'dram_active_percent', field: 'dramActiveRatio', scale: 'percent' },
  { name: 'graphics_active_percent', field: 'graphicsActiveRatio', scale: 'percent' },
  { name: 'fp16_active_percent', field: 'fp16ActiveRatio', scale: 'percent' },
  { name: 'fp32_active_percent', field: 'fp32ActiveRatio', scale: 'percent' },
  { name: 'fp64_active_percent', field: 'fp64ActiveRatio', scale: 'percent' },
  { name: 'pcie_tx_mb_per_sec', field: 'pcieTxBytesPerSecond', scale: 'mebibytes' },
  { name: 'pcie_rx_mb_per_sec', field: 'pcieRxBytesPerSecond', scale: 'mebibytes' },
  { name: 'nvlink_tx_mb_per_sec', field: 'nvlinkTxBytesPerSecond', scale: 'mebibytes' },
  { name: 'nvlink_rx_mb_per_sec', field: 'nvlinkRxBytesPerSecond', scale: 'mebibytes' },
  { name: 'energy_joules', field: 'energyJoules', scale: 'same' },
  { name: 'pcie_generation', field: 'pcieGeneration', scale: 'same' },
  { name: 'pcie_width', field: 'pcieWidth', scale: 'same' },
  { name: 'pcie_replay_count', field: 'pcieReplayCount', scale: 'same' },
  { name: 'ecc_corrected_volatile_count', field: 'eccCorrectedVolatileCount', scale: 'same' },
  { name: 'ecc_uncorrected_volatile_count', field: 'eccUncorrectedVolatileCount', scale: 'same' },
  { name: 'ecc_corrected_aggregate_count', field: 'eccCorrectedAggregateCount', scale: 'same' },
  { name: 'ecc_uncorrected_aggregate_count', field: 'eccUncorrectedAggregateCount', scale: 'same' },
  { name: 'remapped_correctable_rows', field: 'remappedCorrectableRows', scale: 'same' },
  { name: 'remapped_uncorrectable_rows', field: 'remappedUncorrectableRows', scale: 'same' },
  { name: 'remap_pending', field: 'remapPending', scale: 'same' },
  { name: 'remap_failure', field: 'remapFailure', scale: 'same' },
  { name: 'retired_pages_single_bit', field: 'retiredPagesSingleBit', scale: 'same' },
  { name: 'retired_pages_double_bit', field: 'retiredPagesDoubleBit', scale: 'same' },
  { name: 'retired_pages_pending', field: 'retiredPagesPending', scale: 'same' },
  { name: 'recovery_action', field: 'recoveryAction', scale: 'same' },
  { name: 'fabric_state', field: 'fabricState', scale: 'same' },
  { name: 'power_violation_seconds', field: 'powerViolationSeconds', scale: 'same' },
  { name: 'thermal_violation_seconds', field: 'thermalViolationSeconds', scale: 'same' },
]

export const GPU_FIELDS: readonly GpuField[] = GPU_COLUMNS.map((column) => column.field)

/** Read every few seconds because the call is dear, carried in between; a line holds them only when they were read. */
export const SLOW_FIELDS: ReadonlySet<GpuField> = new Set<GpuField>([
  'energyJoules',
  'graphicsActiveRatio',
  'pcieGeneration',
  'pcieWidth',
  'pcieReplayCount',
  'eccCorrectedVolatileCount',
  'eccUncorrectedVolatileCount',
  'eccCorrectedAggregateCount',
  'eccUncorrectedAggregateCount',
  'remappedCorrectableRows',
  'remappedUncorrectableRows',
  'remapPending',
  'remapFailure',
  'retiredPagesSingleBit',
  'retiredPagesDoubleBit',
  'retiredPagesPending',
  'recoveryAction',
  'fabricState',
  'powerViolationSeconds',
  'thermalViolationSeconds',
])

/** Every reading null: the start of a sample, to be overwritten with what was read. */
export const NO_READINGS: GpuReadings = Object.freeze(
  Object.fromEntries(GPU_FIELDS.map((field) => [field, null])),
) as unknown as GpuReadings

/** Every fact of a GPU unknown: the start of a GpuInfo, to be overwritten with what was found out. */
export const NO_FACTS: Omit<GpuInfo, 'id' | 'index' | 'label' | 'vendor' | 'provenance'> = Object.freeze({
  name: null,
  pciBusId: null,
  minor: null,
  serial: null,
  driverVersion: null,
  cudaVersion: null,
  libraryVersion: null,
  architecture: null,
  computeCapability: null,
  vbiosVersion: null,
  computeMode: null,
  memoryTotalBytes: null,
  powerLimitWatts: null,
  powerLimitEnforcedWatts: null,
  powerLimitDefaultWatts: null,
  powerLimitMinWatts: null,
  powerLimitMaxWatts: null,
  smClockMaxHertz: null,
  memoryClockMaxHertz: null,
  temperatureSlowdownCelsius: null,
  temperatureShutdownCelsius: null,
  temperatureMaxCelsius: null,
  memoryTemperatureMaxCelsius: null,
  pcieGenerationMax: null,
  pcieWidthMax: null,
  migMode: null,
  mig: null,
  unifiedMemory: false,
  unavailable: Object.freeze({}),
})

/** From base units to a column's unit. Ratios keep six decimals, so that reading back gives the same number. */
export function toColumn(value: number, scale: Scale): number {
  switch (scale) {
    case 'percent':
      return Math.round(value * 1e6) / 1e4
    case 'mebibytes':
      return value / MEBIBYTE
    case 'megahertz':
      return value / 1e6
    default:
      return value
  }
}

export function fromColumn(value: number, scale: Scale): number {
  switch (scale) {
    case 'percent':
      return Math.round(value * 1e4) / 1e6
    case 'mebibytes':
      return Math.round(value * MEBIBYTE)
    case 'megahertz':
      return Math.round(value * 1e6)
    default:
      return value
  }
}

export type JsonRecord = Record<string, unknown>

/** used ÷ total, in percent with two decimals; null when either is unknown or the total is 0. */
export function memoryPercent(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : Math.round((used / total) * 1e4) / 100
}

/** One line of `gpu_metrics_*.jsonl`. */
export function gpuRecord(sample: GpuSample, info: GpuInfo | undefined, processes: readonly ProcessView[]): JsonRecord {
  const record: JsonRecord = { timestamp: new Date(sample.at).toISOString(), gpu_index: info?.index ?? null }
  const slowRead = sample.slowAt === null || sample.slowAt === sample.at
  for (const { name, field, scale, always } of GPU_COLUMNS) {
    const value = sample[field]
    if (name === 'temperature_celsius') record.memory_percent = memoryPercent(sample.memoryUsedBytes, sample.memoryTotalBytes)
    if (value === null) {
      if (always) record[name] = null
    } else if (slowRead || !SLOW_FIELDS.has(field)) record[name] = toColumn(value, scale)
  }
  record.gpu_uuid = sample.gpu
  if (info?.name) record.gpu_name = info.name
  if (info?.mig) record.gpu_label = info.label
  if (info) Object.assign(record, notLive(info.provenance))
  if (sample.state !== 'ok') {
    record.state = sample.state
    record.state_reason = sample.stateReason
  }
  record.processes = sample.processes === null ? null : processes.map(processRecord)
  return record
}

/** The command line is left out on purpose: people put passwords there, and a log is read by more than its owner. */
function processRecord(process: ProcessView): JsonRecord {
  const record: JsonRecord = {
    pid: process.pid,
    memory_used_mb: process.memoryUsedBytes === null ? null : process.memoryUsedBytes / MEBIBYTE,
    type: process.type,
  }
  if (process.smRatio !== null) record.sm_percent = toColumn(process.smRatio, 'percent')
  if (process.memoryRatio !== null) record.memory_bandwidth_percent = toColumn(process.memoryRatio, 'percent')
  if (process.encoderRatio !== null) record.encoder_percent = toColumn(process.encoderRatio, 'percent')
  if (process.decoderRatio !== null) record.decoder_percent = toColumn(process.decoderRatio, 'percent')
  const info = process.info
  if (info) {
    if (info.user !== null) record.user = info.user
    if (info.uid !== null) record.uid = info.uid
    if (info.name !== null) record.name = info.name
    if (info.executable !== null) record.executable = info.executable
    if (info.parentPid !== null) record.parent_pid = info.parentPid
    if (info.state !== null) record.state = info.state
    if (info.startedAt !== null) record.started_at = new Date(info.startedAt).toISOString()
    if (info.residentBytes !== null) record.host_memory_mb = info.residentBytes / MEBIBYTE
    if (info.cpuRatio !== null) record.cpu_percent = toColumn(info.cpuRatio, 'percent')
    if (info.container !== null) record.container = info.container
    if (info.slurmJob !== null) record.slurm_job = info.slurmJob
    if (info.pod !== null) record.pod = info.pod
  }
  return record
}

/** One line of `host_metrics_*.jsonl`. */
export function hostRecord(sample: HostSample, provenance: Provenance = 'live'): JsonRecord {
  const mebibytes = (bytes: Reading) => (bytes === null ? null : bytes / MEBIBYTE)
  const percent = (ratio: Reading) => (ratio === null ? null : toColumn(ratio, 'percent'))
  return {
    timestamp: new Date(sample.at).toISOString(),
    hostname: sample.hostname,
    cpu_percent: percent(sample.cpuRatio),
    cpu_count: sample.cpuCount,
    load_1: sample.load1,
    load_5: sample.load5,
    load_15: sample.load15,
    ram_used_mb: mebibytes(sample.memoryUsedBytes),
    ram_available_mb: mebibytes(sample.memoryAvailableBytes),
    ram_total_mb: mebibytes(sample.memoryTotalBytes),
    swap_used_mb: mebibytes(sample.swapUsedBytes),
    swap_total_mb: mebibytes(sample.swapTotalBytes),
    disk_free_mb: mebibytes(sample.diskFreeBytes),
    disk_total_mb: mebibytes(sample.diskTotalBytes),
    ...(sample.processesReason === null ? {} : { processes_reason: sample.processesReason }),
    ...notLive(provenance),
  }
}

/** One line of `gpu_events_*.jsonl`. */
export function eventRecord(event: GpuEvent, provenance: Provenance = 'live'): JsonRecord {
  return {
    timestamp: new Date(event.at).toISOString(),
    gpu_uuid: event.gpu,
    event: event.event,
    code: event.code,
    message: event.message,
    origin: event.origin,
    ...notLive(provenance),
  }
}

/** One line of `gpu_devices_*.jsonl`: the model as it is. */
export function deviceRecord(info: GpuInfo, at: number): JsonRecord {
  return { timestamp: new Date(at).toISOString(), gpu_index: info.index, ...info }
}

/** NaN and ±Infinity as strings, because JSON has no other way. */
export function jsonNumber(value: Reading): Reading | string {
  return value === null || Number.isFinite(value) ? value : String(value)
}

/** One line of `training_metrics_*.jsonl`. */
export function stepRecord(step: TrainingStep, provenance: Provenance = 'live'): JsonRecord {
  const mebibytes = (bytes: Reading) => (bytes === null ? null : bytes / MEBIBYTE)
  const record: JsonRecord = {
    timestamp: new Date(step.at).toISOString(),
    step: step.step,
    epoch: jsonNumber(step.epoch),
    loss: jsonNumber(step.loss),
    learning_rate: jsonNumber(step.learningRate),
    gradient_norm: jsonNumber(step.gradientNorm),
    throughput_samples_per_sec: jsonNumber(step.throughputPerSecond),
    memory_allocated_mb: mebibytes(step.memoryAllocatedBytes),
    memory_reserved_mb: mebibytes(step.memoryReservedBytes),
    step_duration_seconds: jsonNumber(step.stepSeconds),
    memory_active_mb: mebibytes(step.memoryActiveBytes),
    memory_inactive_split_mb: mebibytes(step.memoryInactiveSplitBytes),
    memory_peak_allocated_mb: mebibytes(step.memoryPeakAllocatedBytes),
    memory_peak_reserved_mb: mebibytes(step.memoryPeakReservedBytes),
    num_alloc_retries: step.allocRetries,
    num_ooms: step.oomCount,
    run: step.run,
    rank: step.rank,
  }
  if (step.phaseSeconds) record.phase_seconds = mapNumbers(step.phaseSeconds)
  if (step.custom) record.custom = mapNumbers(step.custom)
  return Object.assign(record, notLive(provenance))
}

/** What was simulated or played back says so on every line. */
function notLive(provenance: Provenance): { provenance?: Provenance } {
  return provenance === 'live' ? {} : { provenance }
}

function mapNumbers(values: Readonly<Record<string, number>>): JsonRecord {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, jsonNumber(value)]))
}
