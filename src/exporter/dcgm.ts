/** The names, labels and units of NVIDIA's DCGM exporter, so that its dashboards and rules work unchanged. */
import type { GpuInfo, GpuReadings, Reading } from '../core/model.ts'
import type { LabelsOf } from './gpu-table.ts'
import { Labels, NO_LABELS, provenanceLabels } from './labels.ts'
import { type GpuMetric, gpuCounter, gpuGauge } from './metric.ts'
import { mebibytes, megabytes, megahertz, millijoules, nanoseconds, percent } from './units.ts'

export const DCGM_LABELS = [
  'gpu',
  'UUID',
  'pci_bus_id',
  'device',
  'modelName',
  'GPU_I_PROFILE',
  'GPU_I_ID',
  'Hostname',
  'DCGM_FI_DRIVER_VERSION',
] as const

/** A MIG instance carries its parent's identity and two labels of its own. */
export function dcgmLabels(hostname: string, nodeOf: (vendor: string, minor: number) => string | null): LabelsOf {
  return (info, all) => {
    const card: GpuInfo = all.find((other) => other.id === info.mig?.parentId) ?? info
    const minor = card.minor ?? info.minor
    const device = Labels.of({
      gpu: info.index,
      UUID: info.mig?.parentId ?? info.id,
      pci_bus_id: card.pciBusId ?? info.pciBusId,
      device: minor === null ? null : nodeOf(info.vendor, minor),
      modelName: card.name,
    })
    const instance = info.mig === null ? NO_LABELS : Labels.of({ GPU_I_PROFILE: info.mig.profile, GPU_I_ID: info.mig.gpuInstanceId })
    const host = Labels.of({ Hostname: hostname, DCGM_FI_DRIVER_VERSION: info.driverVersion })
    return device.and(instance).and(host).and(provenanceLabels(info.provenance))
  }
}

type Of = (readings: GpuReadings) => Reading

const gauge = (field: string, unit: string, help: string, of: Of): GpuMetric =>
  gpuGauge(`DCGM_FI_${field}`, unit, help, (gpu) => of(gpu.readings))
const counter = (field: string, unit: string, help: string, of: Of): GpuMetric =>
  gpuCounter(`DCGM_FI_${field}`, unit, help, (gpu) => of(gpu.readings))

const fact = (field: string, unit: string, help: string, of: (info: GpuInfo) => Reading): GpuMetric =>
  gpuGauge(`DCGM_FI_${field}`, unit, help, (gpu) => (gpu.current ? of(gpu.info) : null))

const sum = (tx: Reading, rx: Reading): Reading => (tx === null || rx === null ? null : tx + rx)

export const DCGM_METRICS: readonly GpuMetric[] = [
  gauge('DEV_SM_CLOCK', 'MHz', 'SM clock frequency (in MHz).', (r) => megahertz(r.smClockHertz)),
  gauge('DEV_MEM_CLOCK', 'MHz', 'Memory clock frequency (in MHz).', (r) => megahertz(r.memoryClockHertz)),
  gauge('DEV_GPU_TEMP', 'celsius', 'GPU temperature (in C).', (r) => r.temperatureCelsius),
  gauge('DEV_MEMORY_TEMP', 'celsius', 'Memory temperature (in C).', (r) => r.memoryTemperatureCelsius),
  gauge('DEV_POWER_USAGE', 'watts', 'Power draw (in W).', (r) => r.powerWatts),
  counter('DEV_TOTAL_ENERGY_CONSUMPTION', 'mJ', 'Energy used since the driver was loaded (in mJ).', (r) => millijoules(r.energyJoules)),
  counter('DEV_PCIE_REPLAY_COUNTER', '', 'PCIe packets retransmitted because of errors.', (r) => r.pcieReplayCount),
  // As DCGM: none for a MIG instance.
  gpuGauge('DCGM_FI_DEV_GPU_UTIL', 'percent', 'GPU utilization (in %).', ({ info, readings }) =>
    info.mig === null ? percent(readings.utilizationRatio) : null,
  ),
  gauge('DEV_MEM_COPY_UTIL', 'percent', 'Memory controller utilization (in %).', (r) => percent(r.memoryUtilizationRatio)),
  gauge('DEV_ENC_UTIL', 'percent', 'Encoder utilization (in %).', (r) => percent(r.encoderRatio)),
  gauge('DEV_DEC_UTIL', 'percent', 'Decoder utilization (in %).', (r) => percent(r.decoderRatio)),
  gpuGauge(
    'DCGM_FI_DEV_XID_ERRORS',
    '',
    'The last XID error; 0 when none was seen.',
    (gpu) => gpu.xid?.code ?? (gpu.current && gpu.info.mig === null ? 0 : null),
  ),
  gauge('DEV_FB_FREE', 'MiB', 'Framebuffer memory free (in MiB).', (r) => mebibytes(r.memoryFreeBytes)),
  gauge('DEV_FB_USED', 'MiB', 'Framebuffer memory used (in MiB).', (r) => mebibytes(r.memoryUsedBytes)),
  gauge('DEV_FB_RESERVED', 'MiB', 'Framebuffer memory reserved by the driver (in MiB).', (r) => mebibytes(r.memoryReservedBytes)),
  gauge('DEV_FB_TOTAL', 'MiB', 'Framebuffer memory (in MiB).', (r) => mebibytes(r.memoryTotalBytes)),
  gauge('DEV_NVLINK_BANDWIDTH_TOTAL', 'MB per second', 'NVLink traffic, sent and received, over all links (in MB/s).', (r) =>
    megabytes(sum(r.nvlinkTxBytesPerSecond, r.nvlinkRxBytesPerSecond)),
  ),
  counter('DEV_UNCORRECTABLE_REMAPPED_ROWS', '', 'Memory rows remapped after uncorrectable errors.', (r) => r.remappedUncorrectableRows),
  counter('DEV_CORRECTABLE_REMAPPED_ROWS', '', 'Memory rows remapped after correctable errors.', (r) => r.remappedCorrectableRows),
  gauge('DEV_ROW_REMAP_FAILURE', '', '1 when remapping of rows has failed.', (r) => r.remapFailure),
  counter('DEV_ECC_SBE_VOL_TOTAL', '', 'Single-bit volatile ECC errors.', (r) => r.eccCorrectedVolatileCount),
  counter('DEV_ECC_DBE_VOL_TOTAL', '', 'Double-bit volatile ECC errors.', (r) => r.eccUncorrectedVolatileCount),
  gauge('DEV_CLOCK_THROTTLE_REASONS', 'bit mask', 'Reasons that limit the clocks, as a bit mask.', (r) => r.clockEventReasons),
  counter('DEV_POWER_VIOLATION', 'ns', 'Time throttled by the power limit (in ns).', (r) => nanoseconds(r.powerViolationSeconds)),
  counter('DEV_THERMAL_VIOLATION', 'ns', 'Time throttled by temperature (in ns).', (r) => nanoseconds(r.thermalViolationSeconds)),
  fact('DEV_BAR1_TOTAL', 'MiB', 'Size of the BAR1 window (in MiB).', (i) => mebibytes(i.bar1TotalBytes)),
  gauge('DEV_BAR1_USED', 'MiB', 'BAR1 window in use (in MiB).', (r) => mebibytes(r.bar1UsedBytes)),
  fact('DEV_ECC_CURRENT', '', '1 when ECC is on.', (i) => (i.eccMode === null ? null : i.eccMode === 'enabled' ? 1 : 0)),
  fact('DEV_PERSISTENCE_MODE', '', '1 when persistence mode is on.', (i) =>
    i.persistenceMode === null ? null : i.persistenceMode === 'enabled' ? 1 : 0,
  ),
  counter('DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL', '', 'Packets sent again over all NVLinks.', (r) => r.nvlinkReplayCount),
  counter('DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL', '', 'How often an NVLink went down and came back.', (r) => r.nvlinkRecoveryCount),
  gauge('PROF_GR_ENGINE_ACTIVE', 'ratio', 'Share of time the graphics engine was active.', (r) => r.graphicsActiveRatio),
  gauge('PROF_SM_ACTIVE', 'ratio', 'Share of multiprocessors with work, averaged over time.', (r) => r.smActiveRatio),
  gauge('PROF_SM_OCCUPANCY', 'ratio', 'Resident warps as a share of the maximum.', (r) => r.smOccupancyRatio),
  gauge('PROF_PIPE_TENSOR_ACTIVE', 'ratio', 'Share of time the tensor cores were active.', (r) => r.tensorActiveRatio),
  gauge('PROF_DRAM_ACTIVE', 'ratio', 'Share of memory bandwidth in use.', (r) => r.dramActiveRatio),
  gauge('PROF_PCIE_TX_BYTES', 'bytes per second', 'Sent by the GPU over PCIe (in B/s).', (r) => r.pcieTxBytesPerSecond),
  gauge('PROF_PCIE_RX_BYTES', 'bytes per second', 'Received by the GPU over PCIe (in B/s).', (r) => r.pcieRxBytesPerSecond),
]

/** Whether a metric means the same, in the same unit, for a card of another vendor. Memory that belongs to the host is no framebuffer. */
export function isShared(name: string, { unifiedMemory }: GpuInfo): boolean {
  return SHARED.has(name) && !(unifiedMemory && name.includes('_FB_'))
}

const SHARED: ReadonlySet<string> = new Set(
  [
    ...['SM_CLOCK', 'MEM_CLOCK', 'GPU_TEMP', 'MEMORY_TEMP', 'POWER_USAGE', 'TOTAL_ENERGY_CONSUMPTION', 'PCIE_REPLAY_COUNTER'],
    ...['GPU_UTIL', 'MEM_COPY_UTIL', 'ENC_UTIL', 'DEC_UTIL', 'FB_FREE', 'FB_USED', 'FB_TOTAL'],
  ].map((name) => `DCGM_FI_DEV_${name}`),
)
