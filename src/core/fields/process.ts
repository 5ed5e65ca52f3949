/** The fields of a process: its share of a GPU, and who it is. In the order of a recording's columns. */
import type { ColumnTable } from './field.ts'

export const GPU_PROCESS_TYPES = ['compute', 'graphics', 'both'] as const

/** Besides PID, type and memory. */
export const PROCESS_SHARES = {
  smRatio: { column: 'sm_percent', scale: 'percent' },
  memoryRatio: { column: 'memory_bandwidth_percent', scale: 'percent' },
  encoderRatio: { column: 'encoder_percent', scale: 'percent' },
  decoderRatio: { column: 'decoder_percent', scale: 'percent' },
} as const satisfies ColumnTable

/** The command line is never recorded: people put passwords there, and others read logs. */
export const PROCESS_INFO = {
  user: { column: 'user', scale: 'text' },
  uid: { column: 'uid', scale: 'same' },
  /** Short name of the program. */
  name: { column: 'name', scale: 'text' },
  executable: { column: 'executable', scale: 'text' },
  parentPid: { column: 'parent_pid', scale: 'same' },
  /** Kernel's state letter: R, S, D, Z, T … */
  state: { column: 'state', scale: 'text' },
  /** With the PID this is the identity: a reused PID has another start time. */
  startedAt: { column: 'started_at', scale: 'time' },
  residentBytes: { column: 'host_memory_mb', scale: 'mebibytes' },
  /** 1 = one whole core. */
  cpuRatio: { column: 'cpu_percent', scale: 'percent' },
  /** `docker:4f1c…`, `podman:…`, `containerd:…` */
  container: { column: 'container', scale: 'text' },
  slurmJob: { column: 'slurm_job', scale: 'text' },
  /** Kubernetes pod UID. */
  pod: { column: 'pod', scale: 'text' },
} as const satisfies ColumnTable
