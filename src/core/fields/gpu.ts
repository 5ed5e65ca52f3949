/** The fields of a GPU: facts (GPU_INFO) and readings (GPU_READINGS). A new one is one row here. */
import type { Column, FactTable } from './field.ts'

export const PROVENANCES = ['live', 'simulated', 'replay'] as const

export const GPU_STATES = ['ok', 'lost', 'reset_required', 'suspended', 'error', 'no_driver'] as const

export const GPU_EVENTS = [
  'xid',
  'ecc_corrected',
  'ecc_uncorrected',
  'gpu_unavailable',
  'recovery_action',
  'lost',
  'recovered',
  'log_gap',
  'oom_kill',
  'clock_jump',
  'shutdown',
] as const

export const MIG_INSTANCE = {
  parentId: { is: 'name' },
  gpuInstanceId: { is: 'count' },
  computeInstanceId: { is: 'reading' },
  /** `1g.10gb` */
  profile: { is: 'text' },
} as const satisfies FactTable

export const ON_OR_OFF = ['enabled', 'disabled'] as const

/** One NVLink, or one link between GPU and CPU (C2C), with what went wrong on it. */
export const GPU_LINK = {
  link: { is: 'count' },
  state: { is: 'choice', of: ['active', 'inactive', 'asleep'] },
  version: { is: 'reading' },
  /** In one direction. */
  bytesPerSecondMax: { is: 'reading' },
  replayCount: { is: 'reading' },
  recoveryCount: { is: 'reading' },
  crcErrorCount: { is: 'reading' },
  /** From NVLink 5 on: errors that remained after correction, and symbols received wrong. */
  effectiveErrorCount: { is: 'reading' },
  symbolErrorCount: { is: 'reading' },
} as const satisfies FactTable

/** Where a GPU is in its rack (GB200, GB300). */
export const GPU_PLATFORM = {
  chassisSerial: { is: 'text' },
  slot: { is: 'reading' },
  tray: { is: 'reading' },
  host: { is: 'reading' },
  module: { is: 'reading' },
} as const satisfies FactTable

export const GPU_INFO = {
  /** Stable identity: NVIDIA UUID (`GPU-…`, `MIG-…`), AMD `unique_id`, else the PCI address; of a partition, the card's and its number. */
  id: { is: 'name' },
  /** Position among all GPUs of this host, in PCI/driver order; a MIG instance has its parent's. */
  index: { is: 'count' },
  /** `0`; `0:2` for MIG instance 2 of GPU 0; `0:2:1` for compute instance 1 in it where it is only a part of it. */
  label: { is: 'name' },
  /** Name of the source that reads such cards. */
  vendor: { is: 'name' },
  provenance: { is: 'choice', of: PROVENANCES, missing: 'live' },
  name: { is: 'text' },
  /** `00000000:8D:00.0` (domain 8 hex digits, upper case). */
  pciBusId: { is: 'text' },
  /** `/dev/nvidiaN` minor number, or the DRM card number. */
  minor: { is: 'reading' },
  serial: { is: 'text' },
  driverVersion: { is: 'text' },
  cudaVersion: { is: 'text' },
  libraryVersion: { is: 'text' },
  architecture: { is: 'text' },
  /** `9.0`: what CUDA code a card can run. */
  computeCapability: { is: 'text' },
  vbiosVersion: { is: 'text' },
  /** Of the board: what a replacement is ordered by. */
  partNumber: { is: 'text' },
  gspFirmwareVersion: { is: 'text' },
  eccMode: { is: 'choice', of: ON_OR_OFF },
  /** In force after the next reset. */
  eccModePending: { is: 'choice', of: ON_OR_OFF },
  persistenceMode: { is: 'choice', of: ON_OR_OFF },
  /** `devtools`: on, but open to debuggers. */
  confidentialComputing: { is: 'choice', of: ['off', 'on', 'devtools'] },
  powerSmoothing: { is: 'choice', of: ON_OR_OFF },
  platform: { is: 'object', of: GPU_PLATFORM },
  /** NVML's number: 0 shared, 1 one thread, 2 nobody, 3 one process. */
  computeMode: { is: 'reading' },
  memoryTotalBytes: { is: 'reading' },
  /** As set; what is in force can be less. */
  powerLimitWatts: { is: 'reading' },
  /** The lowest of all limits that apply now. */
  powerLimitEnforcedWatts: { is: 'reading' },
  /** Factory setting. */
  powerLimitDefaultWatts: { is: 'reading' },
  powerLimitMinWatts: { is: 'reading' },
  powerLimitMaxWatts: { is: 'reading' },
  smClockMaxHertz: { is: 'reading' },
  memoryClockMaxHertz: { is: 'reading' },
  temperatureSlowdownCelsius: { is: 'reading' },
  temperatureShutdownCelsius: { is: 'reading' },
  temperatureMaxCelsius: { is: 'reading' },
  /** Of the hottest spot of the chip, where the card has a limit of its own for it. */
  junctionTemperatureMaxCelsius: { is: 'reading' },
  memoryTemperatureMaxCelsius: { is: 'reading' },
  pcieGenerationMax: { is: 'reading' },
  pcieWidthMax: { is: 'reading' },
  /** Window through which the CPU reaches the memory of the GPU. */
  bar1TotalBytes: { is: 'reading' },
  nvlinks: { is: 'list', of: GPU_LINK },
  c2cLinks: { is: 'list', of: GPU_LINK },
  /** GPUs with the same cluster and clique reach each other over NVLink. */
  fabricClusterId: { is: 'text' },
  fabricCliqueId: { is: 'reading' },
  migMode: { is: 'choice', of: ON_OR_OFF },
  mig: { is: 'object', of: MIG_INSTANCE },
  /** How a card is divided that is not divided by MIG: `CPX NPS4`. */
  partitioning: { is: 'text' },
  /** Memory is the host's (GB10, Orin, APUs): running out of it is a host OOM. */
  unifiedMemory: { is: 'flag' },
  /** Why a field of GpuSample or GpuInfo is null, by field name, where it is known. */
  unavailable: { is: 'texts' },
} as const satisfies FactTable

export interface ReadingRow extends Column {
  readonly scale: 'same' | 'percent' | 'mebibytes' | 'megahertz'
  /** Written even when null: promised columns. */
  readonly always?: true
  /** Expensive, so read every few seconds and carried in between; a line holds it only when it was read. */
  readonly slow?: true
}

/** In the order of the columns in a `gpu_metrics` line. */
export const GPU_READINGS = {
  utilizationRatio: { column: 'utilization_percent', scale: 'percent', always: true },
  /** Without the driver's reserve where the device separates them. */
  memoryUsedBytes: { column: 'memory_used_mb', scale: 'mebibytes', always: true },
  memoryTotalBytes: { column: 'memory_total_mb', scale: 'mebibytes', always: true },
  temperatureCelsius: { column: 'temperature_celsius', scale: 'same', always: true },
  powerWatts: { column: 'power_draw_watts', scale: 'same', always: true },
  fanRatio: { column: 'fan_speed_percent', scale: 'percent', always: true },
  /** Where the card tells the speed itself. */
  fanRpm: { column: 'fan_rpm', scale: 'same' },
  memoryFreeBytes: { column: 'memory_free_mb', scale: 'mebibytes' },
  memoryReservedBytes: { column: 'memory_reserved_by_driver_mb', scale: 'mebibytes' },
  /** Share of time the memory controller was busy. */
  memoryUtilizationRatio: { column: 'memory_bandwidth_percent', scale: 'percent' },
  /** Of the hottest spot of the chip. */
  junctionTemperatureCelsius: { column: 'junction_temperature_celsius', scale: 'same' },
  memoryTemperatureCelsius: { column: 'memory_temperature_celsius', scale: 'same' },
  graphicsClockHertz: { column: 'graphics_clock_mhz', scale: 'megahertz' },
  smClockHertz: { column: 'sm_clock_mhz', scale: 'megahertz' },
  memoryClockHertz: { column: 'memory_clock_mhz', scale: 'megahertz' },
  videoClockHertz: { column: 'video_clock_mhz', scale: 'megahertz' },
  /** P-state: 0 is fastest, 15 slowest. */
  performanceState: { column: 'performance_state', scale: 'same' },
  /** NVML's bit mask of why clocks are where they are; other vendors map onto it. */
  clockEventReasons: { column: 'clocks_event_reasons', scale: 'same' },
  encoderRatio: { column: 'encoder_percent', scale: 'percent' },
  decoderRatio: { column: 'decoder_percent', scale: 'percent' },
  smActiveRatio: { column: 'sm_active_percent', scale: 'percent' },
  smOccupancyRatio: { column: 'sm_occupancy_percent', scale: 'percent' },
  tensorActiveRatio: { column: 'tensor_active_percent', scale: 'percent' },
  dramActiveRatio: { column: 'dram_active_percent', scale: 'percent' },
  graphicsActiveRatio: { column: 'graphics_active_percent', scale: 'percent', slow: true },
  fp16ActiveRatio: { column: 'fp16_active_percent', scale: 'percent' },
  fp32ActiveRatio: { column: 'fp32_active_percent', scale: 'percent' },
  fp64ActiveRatio: { column: 'fp64_active_percent', scale: 'percent' },
  pcieTxBytesPerSecond: { column: 'pcie_tx_mb_per_sec', scale: 'mebibytes' },
  pcieRxBytesPerSecond: { column: 'pcie_rx_mb_per_sec', scale: 'mebibytes' },
  nvlinkTxBytesPerSecond: { column: 'nvlink_tx_mb_per_sec', scale: 'mebibytes' },
  nvlinkRxBytesPerSecond: { column: 'nvlink_rx_mb_per_sec', scale: 'mebibytes' },
  /** Over all links between AMD cards. */
  xgmiTxBytesPerSecond: { column: 'xgmi_tx_mb_per_sec', scale: 'mebibytes' },
  xgmiRxBytesPerSecond: { column: 'xgmi_rx_mb_per_sec', scale: 'mebibytes' },
  /** Compute dies of a card that is made of several (MI300). */
  xcd0ActiveRatio: { column: 'xcd0_active_percent', scale: 'percent' },
  xcd1ActiveRatio: { column: 'xcd1_active_percent', scale: 'percent' },
  xcd2ActiveRatio: { column: 'xcd2_active_percent', scale: 'percent' },
  xcd3ActiveRatio: { column: 'xcd3_active_percent', scale: 'percent' },
  xcd4ActiveRatio: { column: 'xcd4_active_percent', scale: 'percent' },
  xcd5ActiveRatio: { column: 'xcd5_active_percent', scale: 'percent' },
  xcd6ActiveRatio: { column: 'xcd6_active_percent', scale: 'percent' },
  xcd7ActiveRatio: { column: 'xcd7_active_percent', scale: 'percent' },
  /** Counter since driver load. */
  energyJoules: { column: 'energy_joules', scale: 'same', slow: true },
  pcieGeneration: { column: 'pcie_generation', scale: 'same', slow: true },
  pcieWidth: { column: 'pcie_width', scale: 'same', slow: true },
  pcieReplayCount: { column: 'pcie_replay_count', scale: 'same', slow: true },
  eccCorrectedVolatileCount: { column: 'ecc_corrected_volatile_count', scale: 'same', slow: true },
  eccUncorrectedVolatileCount: { column: 'ecc_uncorrected_volatile_count', scale: 'same', slow: true },
  eccCorrectedAggregateCount: { column: 'ecc_corrected_aggregate_count', scale: 'same', slow: true },
  eccUncorrectedAggregateCount: { column: 'ecc_uncorrected_aggregate_count', scale: 'same', slow: true },
  remappedCorrectableRows: { column: 'remapped_correctable_rows', scale: 'same', slow: true },
  remappedUncorrectableRows: { column: 'remapped_uncorrectable_rows', scale: 'same', slow: true },
  /** 1 when rows wait for a reset to be remapped. */
  remapPending: { column: 'remap_pending', scale: 'same', slow: true },
  /** 1 when remapping failed: replace the card. */
  remapFailure: { column: 'remap_failure', scale: 'same', slow: true },
  retiredPagesSingleBit: { column: 'retired_pages_single_bit', scale: 'same', slow: true },
  retiredPagesDoubleBit: { column: 'retired_pages_double_bit', scale: 'same', slow: true },
  retiredPagesPending: { column: 'retired_pages_pending', scale: 'same', slow: true },
  /** NVML's recovery action: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset. */
  recoveryAction: { column: 'recovery_action', scale: 'same', slow: true },
  /** State of joining the NVLink fabric (NVML): 1 not started, 2 in progress, 3 completed; null without a fabric. */
  fabricState: { column: 'fabric_state', scale: 'same', slow: true },
  /** NVML's summary: 1 healthy, 2 unhealthy, 3 limited capacity; null without a fabric. */
  fabricHealth: { column: 'fabric_health', scale: 'same', slow: true },
  jpegRatio: { column: 'jpeg_percent', scale: 'percent', slow: true },
  /** Optical flow accelerator. */
  ofaRatio: { column: 'ofa_percent', scale: 'percent', slow: true },
  /** To the limit at which the card slows down (T.Limit); below 0 it is over it. */
  temperatureMarginCelsius: { column: 'temperature_margin_celsius', scale: 'same', slow: true },
  memoryPowerWatts: { column: 'memory_power_watts', scale: 'same', slow: true },
  /** GPU and CPU of one module together (Grace, Jetson). */
  modulePowerWatts: { column: 'module_power_watts', scale: 'same', slow: true },
  bar1UsedBytes: { column: 'bar1_used_mb', scale: 'mebibytes', slow: true },
  nvlinkActiveCount: { column: 'nvlink_active_count', scale: 'same', slow: true },
  /** Of all NVLinks together; each one is in GpuInfo. */
  nvlinkReplayCount: { column: 'nvlink_replay_count', scale: 'same', slow: true },
  nvlinkRecoveryCount: { column: 'nvlink_recovery_count', scale: 'same', slow: true },
  nvlinkCrcErrorCount: { column: 'nvlink_crc_error_count', scale: 'same', slow: true },
  /** 1 when a memory channel, or a part of the chip, waits for a reset to be repaired. */
  channelRepairPending: { column: 'channel_repair_pending', scale: 'same', slow: true },
  tpcRepairPending: { column: 'tpc_repair_pending', scale: 'same', slow: true },
  softwareThermalSeconds: { column: 'software_thermal_seconds', scale: 'same', slow: true },
  hardwareThermalSeconds: { column: 'hardware_thermal_seconds', scale: 'same', slow: true },
  powerBrakeSeconds: { column: 'power_brake_seconds', scale: 'same', slow: true },
  powerViolationSeconds: { column: 'power_violation_seconds', scale: 'same', slow: true },
  thermalViolationSeconds: { column: 'thermal_violation_seconds', scale: 'same', slow: true },
} as const satisfies Readonly<Record<string, ReadingRow>>
