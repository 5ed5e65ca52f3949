import { ALERT_METRICS } from './alerts.ts'
import { DCGM_LABELS, DCGM_METRICS } from './dcgm.ts'
import { EVENT_METRICS } from './events.ts'
import { HOST_METRICS } from './host.ts'
import { LINK_METRICS } from './links.ts'
import type { Family } from './metric.ts'
import { NATIVE_LABELS, NATIVE_METRICS } from './native.ts'
import { NVIDIA_SMI_LABELS, NVIDIA_SMI_METRICS } from './nvidia-smi.ts'
import { NVIDIA_SMI_COLLECTION } from './nvidia-smi-collection.ts'
import { NVIDIA_SMI_MIG } from './nvidia-smi-mig.ts'
import { NVIDIA_SMI_PROCESSES } from './nvidia-smi-processes.ts'
import { PROCESS_METRICS } from './processes.ts'
import { SELF_METRICS } from './self.ts'
import { RUN_METRICS, TRAINING_METRICS } from './training.ts'
import { USAGE_METRICS } from './usage.ts'

export interface CatalogueEntry {
  readonly title: string
  readonly labels: readonly string[]
  readonly metrics: readonly Family[]
}

export const CATALOGUE: readonly CatalogueEntry[] = [
  { title: 'GPUs (set `native`)', labels: NATIVE_LABELS, metrics: NATIVE_METRICS },
  { title: 'Links of GPUs (set `native`)', labels: NATIVE_LABELS, metrics: LINK_METRICS },
  { title: 'Processes (set `native`)', labels: [], metrics: PROCESS_METRICS },
  { title: 'Events and predictions (set `native`)', labels: [], metrics: EVENT_METRICS },
  { title: 'Host (set `native`)', labels: [], metrics: HOST_METRICS },
  { title: 'Training (always)', labels: [], metrics: TRAINING_METRICS },
  { title: 'Training runs as a whole (always)', labels: [], metrics: RUN_METRICS },
  { title: 'Users (always, where usage is counted)', labels: [], metrics: USAGE_METRICS },
  { title: 'Alerts (always, where they are switched on)', labels: [], metrics: ALERT_METRICS },
  { title: 'gpuwarden itself (always)', labels: [], metrics: SELF_METRICS },
  { title: 'DCGM-compatible (set `dcgm`)', labels: DCGM_LABELS, metrics: DCGM_METRICS },
  { title: 'nvidia-smi-compatible (set `nvidia_smi`), per GPU', labels: NVIDIA_SMI_LABELS, metrics: NVIDIA_SMI_METRICS },
  { title: 'nvidia-smi-compatible (set `nvidia_smi`), MIG instances', labels: [], metrics: NVIDIA_SMI_MIG },
  { title: 'nvidia-smi-compatible (set `nvidia_smi`), processes', labels: [], metrics: NVIDIA_SMI_PROCESSES },
  { title: 'nvidia-smi-compatible (set `nvidia_smi`), collection', labels: [], metrics: NVIDIA_SMI_COLLECTION },
]
