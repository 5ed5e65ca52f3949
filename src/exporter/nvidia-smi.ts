/** The names, labels and units of the exporter built on nvidia-smi, for the dashboards made for it: what every whole GPU has. */
import type { GpuInfo, GpuReadings, Reading } from '../core/model.ts'
import type { LabelsOf } from './gpu-table.ts'
import { Labels, provenanceLabels } from './labels.ts'
import { type GpuMetric, gpuCounter, gpuGauge, gpuGauges } from './metric.ts'
import { reasonActive, THROTTLE_REASONS } from './throttle-reasons.ts'

export const NVIDIA_SMI_LABELS = ['uuid'] as const

export const nvidiaSmiLabels: LabelsOf = (info) =>
  info.mig === null ? Labels.of({ uuid: smiUuid(info.id) }).and(provenanceLabels(info.provenance)) : null

/** As that exporter writes it: without `GPU-`. */
export function smiUuid(id: string): string {
  return id.startsWith('GPU-') ? id.slice('GPU-'.length) : id
}

const INFO_LABELS = ['name', 'driver_version', 'vbios_version', 'pci_bus_id', 'serial', 'compute_cap', 'index', 'cuda_version']

function infoLabels(info: GpuInfo): Labels {
  return Labels.of({
    name: info.name,
    driver_version: info.driverVersion,
    vbios_version: info.vbiosVersion,
    pci_bus_id: info.pciBusId,
    serial: info.serial,
    compute_cap: info.computeCapability,
    index: info.index,
    cuda_version: info.cudaVersion,
  })
}

const gauge = (field: string, unit: string, help: string, of: (readings: GpuReadings) => Reading): GpuMetric =>
  gpuGauge(`nvidia_smi_${field}`, unit, help, (gpu) => of(gpu.readings))
const limit = (field: string, unit: string, help: string, of: (info: GpuInfo) => Reading): GpuMetric =>
  gpuGauge(`nvidia_smi_${field}`, unit, help, (gpu) => (gpu.current ? of(gpu.info) : null))

const enabled = (mode: 'enabled' | 'disabled' | null): Reading => (mode === null ? null : mode === 'enabled' ? 1 : 0)

export const NVIDIA_SMI_METRICS: readonly GpuMetric[] = [
  gpuGauges('nvidia_smi_gpu_info', '', 'What the GPU is; always 1.', INFO_LABELS, [{ labels: infoLabels, value: () => 1 }]),
  gpuGauge('nvidia_smi_index', '', 'index', (gpu) => gpu.info.index),
  gauge('utilization_gpu_ratio', 'ratio', 'utilization.gpu', (r) => r.utilizationRatio),
  gauge('utilization_memory_ratio', 'ratio', 'utilization.memory', (r) => r.memoryUtilizationRatio),
  gauge('utilization_encoder_ratio', 'ratio', 'utilization.encoder', (r) => r.encoderRatio),
  gauge('utilization_decoder_ratio', 'ratio', 'utilization.decoder', (r) => r.decoderRatio),
  gauge('utilization_jpeg_ratio', 'ratio', 'utilization.jpeg', (r) => r.jpegRatio),
  gauge('utilization_ofa_ratio', 'ratio', 'utilization.ofa', (r) => r.ofaRatio),
  gauge('memory_used_bytes', 'bytes', 'memory.used', (r) => r.memoryUsedBytes),
  gauge('memory_free_bytes', 'bytes', 'memory.free', (r) => r.memoryFreeBytes),
  gauge('memory_total_bytes', 'bytes', 'memory.total', (r) => r.memoryTotalBytes),
  gauge('memory_reserved_bytes', 'bytes', 'memory.reserved', (r) => r.memoryReservedBytes),
  gauge('power_draw_watts', 'watts', 'power.draw', (r) => r.powerWatts),
  limit('power_limit_watts', 'watts', 'power.limit', (i) => i.powerLimitWatts),
  limit('enforced_power_limit_watts', 'watts', 'enforced.power.limit', (i) => i.powerLimitEnforcedWatts),
  limit('power_default_limit_watts', 'watts', 'power.default_limit', (i) => i.powerLimitDefaultWatts),
  limit('power_min_limit_watts', 'watts', 'power.min_limit', (i) => i.powerLimitMinWatts),
  limit('power_max_limit_watts', 'watts', 'power.max_limit', (i) => i.powerLimitMaxWatts),
  gauge('temperature_gpu', 'celsius', 'temperature.gpu', (r) => r.temperatureCelsius),
  gauge('temperature_gpu_tlimit', 'celsius', 'temperature.gpu.tlimit', (r) => r.temperatureMarginCelsius),
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
  gauge('retired_pages_single_bit_ecc_count', '', 'retired_pages.single_bit_ecc.count', (r) => r.retiredPagesSingleBit),
  gauge('retired_pages_double_bit_count', '', 'retired_pages.double_bit.count', (r) => r.retiredPagesDoubleBit),
  gauge('retired_pages_pending', '', 'retired_pages.pending', (r) => r.retiredPagesPending),
  gauge('gpu_recovery_action', '', 'gpu_recovery_action', (r) => r.recoveryAction),
  gauge('fabric_state', '', 'fabric.state: 1 not started, 2 in progress, 3 completed', (r) => r.fabricState),
  gpuCounter('nvidia_smi_energy_joules_total', 'joules', 'Energy used since the driver was loaded.', (gpu) => gpu.readings.energyJoules),
  gauge('pcie_throughput_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU over PCIe.', (r) => r.pcieTxBytesPerSecond),
  gauge('pcie_throughput_rx_bytes_per_second', 'bytes per second', 'Received by the GPU over PCIe.', (r) => r.pcieRxBytesPerSecond),
  gauge('pcie_link_gen_current', '', 'pcie.link.gen.current', (r) => r.pcieGeneration),
  gauge('pcie_link_width_current', '', 'pcie.link.width.current', (r) => r.pcieWidth),
  limit('pcie_link_gen_max', '', 'pcie.link.gen.max', (i) => i.pcieGenerationMax),
  limit('pcie_link_width_max', '', 'pcie.link.width.max', (i) => i.pcieWidthMax),
  limit('mig_mode_current', '', 'mig.mode.current', (i) => enabled(i.migMode)),
  limit('ecc_mode_current', '', 'ecc.mode.current', (i) => enabled(i.eccMode)),
  limit('ecc_mode_pending', '', 'ecc.mode.pending', (i) => enabled(i.eccModePending)),
  limit('persistence_mode', '', 'persistence_mode', (i) => enabled(i.persistenceMode)),
  limit('compute_mode', '', 'compute_mode: 0 default, 1 one thread, 2 prohibited, 3 one process', (i) => i.computeMode),
]
