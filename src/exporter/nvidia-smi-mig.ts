/** MIG instances under that exporter's names: identity per instance, figures per GPU instance, labeled with the parent's UUID. */
import type { GpuReadings, Reading } from '../core/model.ts'
import { Labels, provenanceLabels } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'
import { smiUuid } from './nvidia-smi.ts'

const LABELS = ['uuid', 'gpu_instance_id']

function instanceLabels({ info }: GpuSubject): Labels | null {
  if (info.mig === null) return null
  return Labels.of({ uuid: smiUuid(info.mig.parentId), gpu_instance_id: info.mig.gpuInstanceId })
}

/** Memory and activity belong to the GPU instance: of several compute instances in it the first one speaks. */
function gauge(name: string, unit: string, help: string, of: (readings: GpuReadings) => Reading): Metric<readonly GpuSubject[]> {
  return metric('gauge', `nvidia_smi_mig_${name}`, unit, help, LABELS, (gpus, emit) => {
    const seen = new Set<string>()
    for (const gpu of gpus) {
      const own = instanceLabels(gpu)
      if (own === null || seen.has(own.text)) continue
      seen.add(own.text)
      emit(own.and(provenanceLabels(gpu.info.provenance)), of(gpu.readings))
    }
  })
}

export const NVIDIA_SMI_MIG: readonly Metric<readonly GpuSubject[]>[] = [
  metric(
    'gauge',
    'nvidia_smi_mig_info',
    '',
    'What the MIG instance is; always 1.',
    ['uuid', 'mig_uuid', 'gpu_instance_id', 'compute_instance_id', 'profile'],
    (gpus, emit) => {
      const seen = new Set<string>()
      for (const { info } of gpus) {
        if (info.mig === null || seen.has(info.id)) continue
        seen.add(info.id)
        const { parentId, gpuInstanceId, computeInstanceId, profile } = info.mig
        const own = Labels.of({
          uuid: smiUuid(parentId),
          mig_uuid: info.id,
          gpu_instance_id: gpuInstanceId,
          compute_instance_id: computeInstanceId,
          profile,
        })
        emit(own.and(provenanceLabels(info.provenance)), 1)
      }
    },
  ),
  gauge('memory_total_bytes', 'bytes', 'Memory of the GPU instance.', (r) => r.memoryTotalBytes),
  gauge('memory_used_bytes', 'bytes', 'Memory of the GPU instance in use.', (r) => r.memoryUsedBytes),
  gauge('memory_free_bytes', 'bytes', 'Memory of the GPU instance that is free.', (r) => r.memoryFreeBytes),
  gauge('memory_reserved_bytes', 'bytes', 'Memory of the GPU instance kept by the driver.', (r) => r.memoryReservedBytes),
  gauge('graphics_activity_ratio', 'ratio', 'Share of time the graphics engine was active.', (r) => r.graphicsActiveRatio),
  gauge('sm_activity_ratio', 'ratio', 'Share of multiprocessors with work, averaged over time.', (r) => r.smActiveRatio),
  gauge('sm_occupancy_ratio', 'ratio', 'Resident warps as a share of the maximum.', (r) => r.smOccupancyRatio),
  gauge('tensor_activity_ratio', 'ratio', 'Share of time the tensor cores were active.', (r) => r.tensorActiveRatio),
  gauge('pcie_throughput_tx_bytes_per_second', 'bytes per second', 'Sent by the GPU instance over PCIe.', (r) => r.pcieTxBytesPerSecond),
  gauge(
    'pcie_throughput_rx_bytes_per_second',
    'bytes per second',
    'Received by the GPU instance over PCIe.',
    (r) => r.pcieRxBytesPerSecond,
  ),
]
