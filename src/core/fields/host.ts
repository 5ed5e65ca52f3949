/** Readings of the host, in the order of the columns in a `host_metrics` line. A new reading is one row here. */
import type { ColumnTable } from './field.ts'

export const HOST_READINGS = {
  cpuRatio: { column: 'cpu_percent', scale: 'percent' },
  cpuCount: { column: 'cpu_count', scale: 'same' },
  load1: { column: 'load_1', scale: 'same' },
  load5: { column: 'load_5', scale: 'same' },
  load15: { column: 'load_15', scale: 'same' },
  memoryUsedBytes: { column: 'ram_used_mb', scale: 'mebibytes' },
  memoryAvailableBytes: { column: 'ram_available_mb', scale: 'mebibytes' },
  memoryTotalBytes: { column: 'ram_total_mb', scale: 'mebibytes' },
  swapUsedBytes: { column: 'swap_used_mb', scale: 'mebibytes' },
  swapTotalBytes: { column: 'swap_total_mb', scale: 'mebibytes' },
  /** Of the file system that holds the log folder. */
  diskFreeBytes: { column: 'disk_free_mb', scale: 'mebibytes' },
  diskTotalBytes: { column: 'disk_total_mb', scale: 'mebibytes' },
} as const satisfies ColumnTable
