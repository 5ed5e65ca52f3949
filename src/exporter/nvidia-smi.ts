/** The names, labels and units of the exporter built on nvidia-smi, for the dashboards made for it. MIG instances are not part of it. */
import type { AgentState, GpuView } from '../kinds.ts'
import type { GpuInfo, GpuReadings, Reading } from '../model.ts'
import type { PairsOf } from './gpu-table.ts'
import { joinPairs, pairs, provenancePairs } from './labels.ts'
import { type GpuMetric, gpuCounter, gpuGauge, gpuGauges, type Metric, metric } from './metric.ts'
import { reasonActive, THROTTLE_REASONS } from './throttle-reasons.ts'
import { seconds } from './units.ts'

export const NVIDIA_SMI_LABELS = ['uuid'] as const

export const nvidiaSmiPairs: PairsOf = (info) => {
  if (info.vendor !== 'nvidia' || info.mig !== null) return null
  const uuid = info.id.startsWith('GPU-') ? info.id.slice('GPU-'.length) : info.id
  return joinPairs(pairs({ uuid }), provenancePairs(info.provenance))
}

const INFO_LABELS = ['name', 'driver_version', 'pci_bus_id', 'serial', 'index', 'cuda_version']

function infoPairs(info: GpuInfo): string {
  return pairs({
    name: info.name,
    driver_version: info.driverVersion,
    pci_bus_id: info.pciBusId,
    serial: info.serial,
    index: info.index,
    cuda_version: info.cudaVersion,
  })
}

const gauge = (field: string, unit: string, help: string, of: (readings: GpuReadings) => Reading): GpuMetric =>
  gpuGauge(`nvidia_smi_${field}`, unit, help, (gpu) => of(gpu.readings))
const limit = (field: string, unit: string, help: string, of: (info: GpuInfo) => Reading): GpuMetric =>
  gpuGauge(`nvidia_smi_${field}`, unit, help, (gpu) => (gpu.current ? of(gpu.info) : null))

export const NVIDIA_SMI_METRICS: readonly GpuMetric[] = [
  gpuGauges('nvidia_smi_gpu_info', '', 'What the GPU is; always 1.', INFO_LABELS, [{ pairs: infoPairs, value: () => 1 }]),
  gpuGauge('nvidia_smi_index', '', 'index', (gpu) => gpu.info.index),
  gauge('utilization_gpu_ratio', 'ratio', 'utilization.gpu', (r) => r.utilizationRatio),
  gauge('utilization_memory_ratio', 'ratio', 'utilization.memory', (r) => r.memoryUtilizationRatio),
  gauge('utilization_encoder_ratio', 'ratio', 'utilization.encoder', (r) => r.encoderRatio),
  gauge('utilization_decoder_ratio', 'ratio', 'utilization.decoder', (r) => r.decoderRatio),
  gauge('memory_used_bytes', 'bytes', 'memory.used', (r) => r.memoryUsedBytes),
  gauge('memory_free_bytes', 'bytes', 'memory.free', (r) => r.memoryFreeBytes),
  gauge('memory_total_bytes', 'bytes', 'memory.total', (r) => r.memoryTotalBytes),
  gauge('memory_reserved_bytes', 'bytes', 'memory.reserved', (r) => r.memoryReservedBytes),
  gauge('power_draw_watts', 'watts', 'power.draw', (r) => r.powerWatts),
  limit('enforced_power_limit_watts', 'watts', 'enforced.power.limit', (i) => i.powerLimitWatts),
  limit('power_min_limit_watts', 'watts', 'power.min_limit', (i) => i.powerLimitMinWatts),
  limit('power_max_limit_watts', 'watts', 'power.max_limit', (i) => i.powerLimitMaxWatts),
  gauge('temperature_gpu', 'celsius', 'temperature.gpu', (r) => r.temperatureCelsius),
  gauge('temperature_memory', 'celsius', 'temperature.memory', (r) => r.memoryTemperatureCelsius),
  gauge('fan_speed_ratio', 'ratio', 'fan.speed', (r) => r.fanRatio),
  gauge('clocks_current_graphics_clock_hz', 'hertz', 'clocks.current.graphics', (r) => r.graphicsClockHertz),
  gauge('clocks_current_sm_clock_hz', 'hertz', 'clocks.current.sm', (r) => r.smClockHertz),
  gauge('clocks_current_memory_clock_hz', 'hertz', 'clocks.current.memory', (r) => r.memoryClockHertz),
  gauge('clocks_current_video_clock_hz', 'hertz', 'clocks.current.video', (r) => r.videoClockHertz),
  // The same clock on every card that we know; NVML's own figure for it is not read.
  limit('clocks_max_graphics_clock_hz', 'hertz', 'clocks.max.graphics', (i) => i.smClockMaxHertz),
  limit('clocks_max_sm_clock_hz', 'hertz', 'clocks.max.sm', (i) => i.smClockMaxHertz),
  limit('clocks_max_memory_clock_hz', 'hertz', 'clocks.max.memory', (i) => i.memoryClockMaxHertz),
  gauge('pstate', '', 'pstate', (r) => r.performanceState),
  gauge('clocks_event_reasons_active', 'bit mask', 'clocks_event_reasons.active', (r) => r.clockEventReasons),
  ...THROTTLE_REASONS.flatMap(({ bit, smiName }) =>
    smiName === null
      ? []
      : [
          gauge(`clocks_event_reasons_${smiName}`, '', `clocks_event_reasons.${smiName}`, (r) => reasonActive(r.clockEventReasons, bit)),
          gauge(`clocks_throttle_reasons_${smiName}`, '', `clocks_event_reasons.${smiName}, by its name before driver 535`, (r) =>
            reasonActive(r.clockEventReasons, bit),
          ),
        ],
  ),
  gauge('ecc_errors_corrected_volatile_total', '', 'ecc.errors.corrected.volatile.total', (r) => r.eccCorrectedVolatileCount),
  gauge('ecc_errors_uncorrected_volatile_total', '', 'ecc.errors.uncorrected.volatile.total', (r) => r.eccUncorrectedVolatileCount),
  gauge('ecc_errors_corrected_aggregate_total', '', 'ecc.errors.corrected.aggregate.total', (r) => r.eccCorrectedAggregateCount),
  gauge('ecc_errors_uncorrected_aggregate_total', '', 'ecc.errors.uncorrected.aggregate.total', (r) => r.eccUncorrectedAggregateCount),
  gauge('remapped_rows_correctable', '', 'remapped_rows.correctable', (r) => r.remappedCorrectableRows),
  gauge('remapped_rows_uncorrectable', '', 'remapped_rows.uncorrectable', (r) => r.remappedUncorrectableRows),
  gauge('remapped_rows_pending', '', 'remapped_rows.pending', (r) => r.remapPending),
  gauge('remapped_rows_failure', '', 'remapped_rows.failure', (r) => r.remapFailure),
  gauge('gpu_recovery_action', '', 'gpu_recovery_action', (r) => r.recoveryAction),
  gpuCounter('nvidia_smi_energy_joules_total', 'joules', 'Energy used since the driver was loaded.', (gpu) => gpu.readings.energyJoules),
  gauge('pcie_throughput_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU over PCIe.', (r) => r.pcieTxBytesPerSecond),
  gauge('pcie_throughput_rx_bytes_per_second', 'bytes per second', 'Received by the GPU over PCIe.', (r) => r.pcieRxBytesPerSecond),
  gauge('pcie_link_gen_current', '', 'pcie.link.gen.current', (r) => r.pcieGeneration),
  gauge('pcie_link_width_current', '', 'pcie.link.width.current', (r) => r.pcieWidth),
  limit('pcie_link_gen_max', '', 'pcie.link.gen.max', (i) => i.pcieGenerationMax),
  limit('pcie_link_width_max', '', 'pcie.link.width.max', (i) => i.pcieWidthMax),
  limit('mig_mode_current', '', 'mig.mode.current', (i) => (i.migMode === null ? null : i.migMode === 'enabled' ? 1 : 0)),
]

const theirs = (state: AgentState): readonly GpuView[] => state.gpus().filter(({ info }) => info.vendor === 'nvidia')

const collecting = (state: AgentState): boolean => theirs(state).some(({ live }) => live)

function latestSampleAt(state: AgentState): Reading {
  let latest: Reading = null
  for (const { sample } of theirs(state)) if (sample !== null && sample.at > (latest ?? 0)) latest = sample.at
  return latest
}

/** The latest time of each XID on each GPU, by its labels. */
function xidTimes(state: AgentState): ReadonlyMap<string, number> {
  const infos = state.gpus().map(({ info }) => info)
  const times = new Map<string, number>()
  for (const { event, gpu, code, at } of [...state.events(), ...state.lastXid().values()]) {
    const info = event === 'xid' && code !== null ? infos.find(({ id }) => id === gpu) : undefined
    const own = info === undefined ? null : nvidiaSmiPairs(info, infos)
    if (own === null) continue
    const key = joinPairs(own, pairs({ xid: code }))
    times.set(key, Math.max(times.get(key) ?? 0, at / 1000))
  }
  return times
}

/** That exporter's statements about itself, answered from what we know of the GPUs and sources. */
export const NVIDIA_SMI_COLLECTION: readonly Metric<AgentState>[] = [
  metric('gauge', 'nvidia_smi_command_exit_code', '', '0 when an NVIDIA GPU can be read, else 1.', [], (state, emit) =>
    emit('', collecting(state) ? 0 : 1),
  ),
  metric('counter', 'nvidia_smi_failed_scrapes_total', '', 'How often a source failed and was started again.', [], (state, emit) => {
    let restarts = 0
    for (const source of state.health()) restarts += source.restarts
    emit('', restarts)
  }),
  metric('gauge', 'nvidia_smi_last_collect_success', '', '1 when an NVIDIA GPU can be read, else 0.', [], (state, emit) =>
    emit('', collecting(state) ? 1 : 0),
  ),
  metric(
    'gauge',
    'nvidia_smi_last_collect_success_timestamp_seconds',
    'seconds',
    'When an NVIDIA GPU was last read, in Unix time.',
    [],
    (state, emit) => emit('', seconds(latestSampleAt(state))),
  ),
  metric(
    'gauge',
    'nvidia_smi_xid_last_timestamp_seconds',
    'seconds',
    'When this XID last happened on this GPU, in Unix time.',
    ['uuid', 'xid'],
    (state, emit) => {
      for (const [labelPairs, at] of xidTimes(state)) emit(labelPairs, at)
    },
  ),
]
