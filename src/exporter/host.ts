/** The machine around the GPUs; nothing of it is shown when the sample is old. */
import type { AgentState } from '../core/kinds.ts'
import type { HostSample, Provenance, Reading } from '../core/model.ts'
import { provenanceLabels } from './labels.ts'
import { type Metric, metric } from './metric.ts'

function gauge(name: string, unit: string, help: string, of: (sample: HostSample) => Reading): Metric<AgentState> {
  return metric('gauge', name, unit, help, [], (state, emit) => {
    const host = state.host()
    if (host?.live) emit(provenanceLabels(provenanceOf(state)), of(host.sample))
  })
}

/** The host is real, or recorded together with the GPUs. */
function provenanceOf(state: AgentState): Provenance {
  if (state.health().every(({ provenance }) => provenance !== 'replay')) return 'live'
  return state.gpus().some(({ info }) => info.provenance === 'simulated') ? 'simulated' : 'replay'
}

export const HOST_METRICS: readonly Metric<AgentState>[] = [
  gauge('host_cpu_ratio', 'ratio', 'Share of all CPU time in use.', (host) => host.cpuRatio),
  gauge('host_cpus', '', 'Logical processors.', (host) => host.cpuCount),
  gauge('host_load1', '', 'Load average of one minute.', (host) => host.load1),
  gauge('host_load5', '', 'Load average of five minutes.', (host) => host.load5),
  gauge('host_load15', '', 'Load average of fifteen minutes.', (host) => host.load15),
  gauge('host_memory_total_bytes', 'bytes', 'Memory of the host.', (host) => host.memoryTotalBytes),
  gauge('host_memory_used_bytes', 'bytes', 'Memory in use.', (host) => host.memoryUsedBytes),
  gauge('host_memory_available_bytes', 'bytes', 'Memory available to programs.', (host) => host.memoryAvailableBytes),
  gauge('host_swap_total_bytes', 'bytes', 'Swap space.', (host) => host.swapTotalBytes),
  gauge('host_swap_used_bytes', 'bytes', 'Swap space in use.', (host) => host.swapUsedBytes),
  gauge('host_disk_total_bytes', 'bytes', 'Size of the file system that holds the logs.', (host) => host.diskTotalBytes),
  gauge('host_disk_free_bytes', 'bytes', 'Free space of the file system that holds the logs.', (host) => host.diskFreeBytes),
]
