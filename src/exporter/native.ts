/** gpuwarden's own names. The first six, with their units, are a promise; the others follow Prometheus' conventions. */
import { GPU_STATES } from '../core/fields/gpu.ts'
import type { GpuInfo, GpuReadings, GpuState, Reading } from '../core/model.ts'
import { Labels, NO_LABELS } from './labels.ts'
import { type GpuMetric, type GpuSubject, gpuCounter, gpuGauge, gpuGauges } from './metric.ts'
import { reasonActive, THROTTLE_REASONS } from './throttle-reasons.ts'
import { mebibytes, percent, seconds } from './units.ts'

export const NATIVE_LABELS = ['gpu', 'uuid', 'name', 'vendor'] as const

type Of<T> = (from: T) => Reading

/** A fixed property, shown only beside current readings. */
const fixed =
  (of: Of<GpuInfo>) =>
  (gpu: GpuSubject): Reading =>
    gpu.current ? of(gpu.info) : null

const reading =
  (of: Of<GpuReadings>) =>
  (gpu: GpuSubject): Reading =>
    of(gpu.readings)

const gauge = (name: string, unit: string, help: string, of: Of<GpuReadings>): GpuMetric => gpuGauge(name, unit, help, reading(of))
const counter = (name: string, unit: string, help: string, of: Of<GpuReadings>): GpuMetric => gpuCounter(name, unit, help, reading(of))
const limit = (name: string, unit: string, help: string, of: Of<GpuInfo>): GpuMetric => gpuGauge(name, unit, help, fixed(of))

const enabled = (of: (info: GpuInfo) => 'enabled' | 'disabled' | null): Of<GpuInfo> => {
  return (info) => {
    const mode = of(info)
    return mode === null ? null : mode === 'enabled' ? 1 : 0
  }
}

/** `stale`: the last sample said ok, and it is too old to believe. */
type ShownState = GpuState | 'stale'

const STATES: readonly ShownState[] = [...GPU_STATES, 'stale']

function shownState({ view }: GpuSubject): ShownState {
  if (view.sample === null) return 'stale'
  return view.sample.state !== 'ok' ? view.sample.state : view.live ? 'ok' : 'stale'
}

function infoLabels(info: GpuInfo): Labels {
  const device = Labels.of({
    driver: info.driverVersion,
    cuda: info.cudaVersion,
    pci_bus_id: info.pciBusId,
    architecture: info.architecture,
    serial: info.serial,
    part_number: info.partNumber,
    gsp_firmware: info.gspFirmwareVersion,
    unified_memory: info.unifiedMemory ? 'true' : null,
    partitioning: info.partitioning,
  })
  return device.and(info.mig === null ? NO_LABELS : Labels.of({ mig_profile: info.mig.profile, mig_parent: info.mig.parentId }))
}

const INFO_LABELS = [
  'driver',
  'cuda',
  'pci_bus_id',
  'architecture',
  'serial',
  'part_number',
  'gsp_firmware',
  'unified_memory',
  'partitioning',
  'mig_profile',
  'mig_parent',
]

/** There for every GPU, whether or not it answers. */
const STANDING: readonly GpuMetric[] = [
  gpuGauges('gpu_info', '', 'What the GPU is; always 1.', INFO_LABELS, [{ labels: infoLabels, value: () => 1 }]),
  gpuGauge(
    'gpuwarden_gpu_up',
    '',
    '1 when the readings of this GPU are current and it works; 0 when they are old or it does not.',
    (gpu) => (shownState(gpu) === 'ok' ? 1 : 0),
  ),
  gpuGauge('gpuwarden_gpu_sample_age_seconds', 'seconds', 'How long ago this GPU was last read.', (gpu) => seconds(gpu.view.ageMs)),
  gpuGauges(
    'gpuwarden_gpu_state',
    '',
    '1 for the state that the GPU is in, 0 for the others. lost: fell off the bus. no_driver: no driver answers for it. stale: no fresh sample.',
    ['state'],
    STATES.map((state) => ({ labels: () => Labels.of({ state }), value: (gpu) => (shownState(gpu) === state ? 1 : 0) })),
  ),
]

const XCD_READINGS: readonly Of<GpuReadings>[] = [
  (r) => r.xcd0ActiveRatio,
  (r) => r.xcd1ActiveRatio,
  (r) => r.xcd2ActiveRatio,
  (r) => r.xcd3ActiveRatio,
  (r) => r.xcd4ActiveRatio,
  (r) => r.xcd5ActiveRatio,
  (r) => r.xcd6ActiveRatio,
  (r) => r.xcd7ActiveRatio,
]

export const NATIVE_METRICS: readonly GpuMetric[] = [
  gauge('gpu_utilization_percent', 'percent', 'Share of time a kernel was running.', (r) => percent(r.utilizationRatio)),
  gauge('gpu_memory_used_mb', 'MiB', 'Memory in use, without the reserve of the driver where the device reports it separately.', (r) =>
    mebibytes(r.memoryUsedBytes),
  ),
  gauge('gpu_memory_total_mb', 'MiB', 'Memory of the GPU.', (r) => mebibytes(r.memoryTotalBytes)),
  gauge('gpu_temperature_celsius', 'celsius', 'Temperature of the GPU.', (r) => r.temperatureCelsius),
  gauge('gpu_power_draw_watts', 'watts', 'Power drawn now.', (r) => r.powerWatts),
  gauge('gpu_fan_speed_percent', 'percent', 'Fan speed; absent on passively cooled cards.', (r) => percent(r.fanRatio)),
  gauge('gpu_fan_rpm', 'revolutions per minute', 'Fan speed, where the card reports it so.', (r) => r.fanRpm),
  gauge('gpu_memory_free_bytes', 'bytes', 'Memory that can still be allocated.', (r) => r.memoryFreeBytes),
  gauge('gpu_memory_reserved_bytes', 'bytes', 'Memory that the driver keeps for itself.', (r) => r.memoryReservedBytes),
  gauge('gpu_memory_utilization_ratio', 'ratio', 'Share of time the memory controller was busy.', (r) => r.memoryUtilizationRatio),
  gauge('gpu_junction_temperature_celsius', 'celsius', 'Temperature of the hottest spot of the chip.', (r) => r.junctionTemperatureCelsius),
  gauge('gpu_memory_temperature_celsius', 'celsius', 'Temperature of the memory.', (r) => r.memoryTemperatureCelsius),
  counter('gpu_energy_joules_total', 'joules', 'Energy used since the driver was loaded.', (r) => r.energyJoules),
  gauge('gpu_graphics_clock_hertz', 'hertz', 'Graphics clock.', (r) => r.graphicsClockHertz),
  gauge('gpu_sm_clock_hertz', 'hertz', 'Clock of the streaming multiprocessors.', (r) => r.smClockHertz),
  gauge('gpu_memory_clock_hertz', 'hertz', 'Memory clock.', (r) => r.memoryClockHertz),
  gauge('gpu_video_clock_hertz', 'hertz', 'Clock of the video engines.', (r) => r.videoClockHertz),
  gauge('gpu_performance_state', '', 'P-state: 0 is fastest, 15 slowest.', (r) => r.performanceState),
  gpuGauges(
    'gpu_throttle_reason',
    '',
    'Reasons that limit the clocks: 1 for each active reason.',
    ['reason'],
    THROTTLE_REASONS.map(({ bit, name }) => ({
      labels: () => Labels.of({ reason: name }),
      value: (gpu) => reasonActive(gpu.readings.clockEventReasons, bit),
    })),
  ),
  gauge('gpu_encoder_utilization_ratio', 'ratio', 'Share of time the video encoder was busy.', (r) => r.encoderRatio),
  gauge('gpu_decoder_utilization_ratio', 'ratio', 'Share of time the video decoder was busy.', (r) => r.decoderRatio),
  gauge('gpu_pcie_link_generation', '', 'PCIe generation of the link now; it falls when idle.', (r) => r.pcieGeneration),
  gauge('gpu_pcie_link_width', '', 'PCIe lanes in use now.', (r) => r.pcieWidth),
  counter('gpu_pcie_replay_total', '', 'PCIe packets retransmitted because of errors.', (r) => r.pcieReplayCount),
  gauge('gpu_pcie_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU over PCIe.', (r) => r.pcieTxBytesPerSecond),
  gauge('gpu_pcie_rx_bytes_per_second', 'bytes per second', 'Received by the GPU over PCIe.', (r) => r.pcieRxBytesPerSecond),
  gauge('gpu_nvlink_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU over all NVLinks.', (r) => r.nvlinkTxBytesPerSecond),
  gauge('gpu_nvlink_rx_bytes_per_second', 'bytes per second', 'Received by the GPU over all NVLinks.', (r) => r.nvlinkRxBytesPerSecond),
  gauge('gpu_xgmi_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU over all XGMI links.', (r) => r.xgmiTxBytesPerSecond),
  gauge('gpu_xgmi_rx_bytes_per_second', 'bytes per second', 'Received by the GPU over all XGMI links.', (r) => r.xgmiRxBytesPerSecond),
  gpuGauges(
    'gpu_xcd_active_ratio',
    'ratio',
    'Share of time a compute die (XCD) was busy.',
    ['xcd'],
    XCD_READINGS.map((of, xcd) => ({ labels: () => Labels.of({ xcd }), value: (gpu) => of(gpu.readings) })),
  ),
  counter(
    'gpu_ecc_corrected_volatile_total',
    '',
    'Memory errors corrected since the driver was loaded.',
    (r) => r.eccCorrectedVolatileCount,
  ),
  counter(
    'gpu_ecc_uncorrected_volatile_total',
    '',
    'Memory errors that could not be corrected since the driver was loaded.',
    (r) => r.eccUncorrectedVolatileCount,
  ),
  counter(
    'gpu_ecc_corrected_aggregate_total',
    '',
    'Memory errors corrected over the lifetime of the card.',
    (r) => r.eccCorrectedAggregateCount,
  ),
  counter(
    'gpu_ecc_uncorrected_aggregate_total',
    '',
    'Memory errors that could not be corrected over the lifetime of the card.',
    (r) => r.eccUncorrectedAggregateCount,
  ),
  counter('gpu_remapped_correctable_rows_total', '', 'Memory rows replaced after correctable errors.', (r) => r.remappedCorrectableRows),
  counter(
    'gpu_remapped_uncorrectable_rows_total',
    '',
    'Memory rows replaced after uncorrectable errors.',
    (r) => r.remappedUncorrectableRows,
  ),
  gauge('gpu_row_remap_pending', '', '1 when memory rows wait for a reset to be replaced.', (r) => r.remapPending),
  gauge('gpu_row_remap_failure', '', '1 when a memory row could not be replaced: replace the card.', (r) => r.remapFailure),
  counter('gpu_retired_pages_single_bit_total', '', 'Memory pages retired after single-bit errors.', (r) => r.retiredPagesSingleBit),
  counter('gpu_retired_pages_double_bit_total', '', 'Memory pages retired after double-bit errors.', (r) => r.retiredPagesDoubleBit),
  gauge('gpu_retired_pages_pending', '', 'Memory pages that wait for a reset to be retired.', (r) => r.retiredPagesPending),
  gauge(
    'gpu_recovery_action',
    '',
    'What the driver asks for: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset.',
    (r) => r.recoveryAction,
  ),
  gauge(
    'gpu_fabric_state',
    '',
    'Joining the NVLink fabric: 1 not started, 2 in progress, 3 completed; absent where there is no NVSwitch.',
    (r) => r.fabricState,
  ),
  gauge('gpu_fabric_health', '', 'Health of the NVLink fabric: 1 healthy, 2 unhealthy, 3 limited capacity.', (r) => r.fabricHealth),
  gauge('gpu_jpeg_utilization_ratio', 'ratio', 'Share of time the JPEG engine was busy.', (r) => r.jpegRatio),
  gauge('gpu_ofa_utilization_ratio', 'ratio', 'Share of time the optical flow engine was busy.', (r) => r.ofaRatio),
  gauge(
    'gpu_temperature_margin_celsius',
    'celsius',
    'Distance to the temperature at which the card slows down (T.Limit); negative above it.',
    (r) => r.temperatureMarginCelsius,
  ),
  gauge('gpu_memory_power_draw_watts', 'watts', 'Power drawn by the memory of the GPU.', (r) => r.memoryPowerWatts),
  gauge(
    'gpu_module_power_draw_watts',
    'watts',
    'Power drawn by the module: GPU and CPU together (Grace, Jetson).',
    (r) => r.modulePowerWatts,
  ),
  gauge('gpu_bar1_used_bytes', 'bytes', 'Window through which the CPU reaches the memory: in use.', (r) => r.bar1UsedBytes),
  gauge('gpu_nvlink_active_links', '', 'NVLinks that are up.', (r) => r.nvlinkActiveCount),
  counter('gpu_nvlink_replay_errors_total', '', 'Packets sent again over all NVLinks.', (r) => r.nvlinkReplayCount),
  counter('gpu_nvlink_recovery_errors_total', '', 'How often an NVLink went down and came back.', (r) => r.nvlinkRecoveryCount),
  counter('gpu_nvlink_crc_errors_total', '', 'Packets with a wrong checksum over all NVLinks.', (r) => r.nvlinkCrcErrorCount),
  gauge('gpu_channel_repair_pending', '', '1 when a memory channel waits for a reset to be repaired.', (r) => r.channelRepairPending),
  gauge('gpu_tpc_repair_pending', '', '1 when a part of the chip waits for a reset to be repaired.', (r) => r.tpcRepairPending),
  counter(
    'gpu_software_thermal_seconds_total',
    'seconds',
    'Time slowed down by the driver because of heat.',
    (r) => r.softwareThermalSeconds,
  ),
  counter(
    'gpu_hardware_thermal_seconds_total',
    'seconds',
    'Time slowed down by the hardware because of heat.',
    (r) => r.hardwareThermalSeconds,
  ),
  counter('gpu_power_brake_seconds_total', 'seconds', 'Time slowed down by the power brake of the server.', (r) => r.powerBrakeSeconds),
  counter('gpu_power_violation_seconds_total', 'seconds', 'Time throttled by the power limit.', (r) => r.powerViolationSeconds),
  counter('gpu_thermal_violation_seconds_total', 'seconds', 'Time throttled by temperature.', (r) => r.thermalViolationSeconds),
  gauge('gpu_graphics_active_ratio', 'ratio', 'Share of time the graphics or compute engine was active.', (r) => r.graphicsActiveRatio),
  gauge('gpu_sm_active_ratio', 'ratio', 'Share of multiprocessors with work, averaged over time.', (r) => r.smActiveRatio),
  gauge('gpu_sm_occupancy_ratio', 'ratio', 'Resident warps as a share of the maximum.', (r) => r.smOccupancyRatio),
  gauge('gpu_tensor_active_ratio', 'ratio', 'Share of time the tensor cores were active.', (r) => r.tensorActiveRatio),
  gauge('gpu_dram_active_ratio', 'ratio', 'Share of memory bandwidth in use.', (r) => r.dramActiveRatio),
  gauge('gpu_fp16_active_ratio', 'ratio', 'Share of time the half-precision units were active.', (r) => r.fp16ActiveRatio),
  gauge('gpu_fp32_active_ratio', 'ratio', 'Share of time the single-precision units were active.', (r) => r.fp32ActiveRatio),
  gauge('gpu_fp64_active_ratio', 'ratio', 'Share of time the double-precision units were active.', (r) => r.fp64ActiveRatio),
  gpuGauge('gpu_processes', '', 'Processes that use this GPU; absent when the list cannot be read.', (gpu) =>
    gpu.current ? (gpu.view.sample?.processes?.length ?? null) : null,
  ),
  limit(
    'gpu_power_limit_watts',
    'watts',
    'Enforced power limit; the configured one if the driver does not report which is enforced.',
    (i) => i.powerLimitEnforcedWatts ?? i.powerLimitWatts,
  ),
  limit('gpu_power_limit_min_watts', 'watts', 'Lowest power limit that can be set.', (i) => i.powerLimitMinWatts),
  limit('gpu_power_limit_max_watts', 'watts', 'Highest power limit that can be set.', (i) => i.powerLimitMaxWatts),
  limit('gpu_sm_clock_max_hertz', 'hertz', 'Highest clock of the streaming multiprocessors.', (i) => i.smClockMaxHertz),
  limit('gpu_memory_clock_max_hertz', 'hertz', 'Highest memory clock.', (i) => i.memoryClockMaxHertz),
  limit('gpu_temperature_slowdown_celsius', 'celsius', 'Temperature at which this card slows down.', (i) => i.temperatureSlowdownCelsius),
  limit('gpu_temperature_shutdown_celsius', 'celsius', 'Temperature at which this card shuts down.', (i) => i.temperatureShutdownCelsius),
  limit('gpu_temperature_max_celsius', 'celsius', 'Highest temperature for normal operation.', (i) => i.temperatureMaxCelsius),
  limit(
    'gpu_junction_temperature_max_celsius',
    'celsius',
    'Highest temperature of the hottest spot.',
    (i) => i.junctionTemperatureMaxCelsius,
  ),
  limit('gpu_memory_temperature_max_celsius', 'celsius', 'Highest temperature of the memory.', (i) => i.memoryTemperatureMaxCelsius),
  limit('gpu_pcie_link_generation_max', '', 'Maximum PCIe generation of card and slot.', (i) => i.pcieGenerationMax),
  limit('gpu_pcie_link_width_max', '', 'Maximum PCIe lanes of card and slot.', (i) => i.pcieWidthMax),
  limit(
    'gpu_mig_enabled',
    '',
    '1 when the card is split into MIG instances.',
    enabled((i) => i.migMode),
  ),
  limit(
    'gpu_ecc_enabled',
    '',
    '1 when the memory corrects errors (ECC).',
    enabled((i) => i.eccMode),
  ),
  limit(
    'gpu_ecc_pending_enabled',
    '',
    '1 when ECC is on after the next reset.',
    enabled((i) => i.eccModePending),
  ),
  limit(
    'gpu_persistence_enabled',
    '',
    '1 when the driver stays loaded while nobody uses the card.',
    enabled((i) => i.persistenceMode),
  ),
  limit(
    'gpu_power_smoothing_enabled',
    '',
    '1 when the card smooths its power draw.',
    enabled((i) => i.powerSmoothing),
  ),
  limit('gpu_confidential_computing', '', 'Confidential computing: 0 off, 1 on, 2 on but open to debuggers.', (i) =>
    i.confidentialComputing === null ? null : ['off', 'on', 'devtools'].indexOf(i.confidentialComputing),
  ),
  limit('gpu_bar1_total_bytes', 'bytes', 'Size of the window through which the CPU reaches the memory.', (i) => i.bar1TotalBytes),
  limit(
    'gpu_fabric_clique',
    '',
    'Number of the NVLink clique: GPUs of one cluster and clique reach each other over NVLink.',
    (i) => i.fabricCliqueId,
  ),
  ...STANDING,
]
