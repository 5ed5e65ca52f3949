/** The values of a training step, in the order of the columns in a `training_metrics` line. A new one is one row here. */
import type { Column } from './field.ts'

export interface FigureRow extends Column {
  /** Name in the lines that training code sends; inside `alloc` for the allocator. */
  readonly sent: string
  /** From PyTorch's allocator. */
  readonly allocator?: true
}

export const STEP_FIGURES = {
  epoch: { column: 'epoch', scale: 'any', sent: 'epoch' },
  loss: { column: 'loss', scale: 'any', sent: 'loss' },
  learningRate: { column: 'learning_rate', scale: 'any', sent: 'lr' },
  gradientNorm: { column: 'gradient_norm', scale: 'any', sent: 'grad_norm' },
  throughputPerSecond: { column: 'throughput_samples_per_sec', scale: 'any', sent: 'throughput' },
  memoryAllocatedBytes: { column: 'memory_allocated_mb', scale: 'mebibytes', sent: 'allocated', allocator: true },
  memoryReservedBytes: { column: 'memory_reserved_mb', scale: 'mebibytes', sent: 'reserved', allocator: true },
  stepSeconds: { column: 'step_duration_seconds', scale: 'any', sent: 'step_seconds' },
  memoryActiveBytes: { column: 'memory_active_mb', scale: 'mebibytes', sent: 'active', allocator: true },
  memoryInactiveSplitBytes: { column: 'memory_inactive_split_mb', scale: 'mebibytes', sent: 'inactive_split', allocator: true },
  memoryPeakAllocatedBytes: { column: 'memory_peak_allocated_mb', scale: 'mebibytes', sent: 'peak_allocated', allocator: true },
  memoryPeakReservedBytes: { column: 'memory_peak_reserved_mb', scale: 'mebibytes', sent: 'peak_reserved', allocator: true },
  allocRetries: { column: 'num_alloc_retries', scale: 'same', sent: 'retries', allocator: true },
  oomCount: { column: 'num_ooms', scale: 'same', sent: 'ooms', allocator: true },
  /** Set by the program (`set_per_process_memory_fraction`); null: none, or PyTorch does not say. */
  memoryLimitBytes: { column: 'memory_limit_mb', scale: 'mebibytes', sent: 'limit', allocator: true },
} as const satisfies Readonly<Record<string, FigureRow>>

export type StepFigure = keyof typeof STEP_FIGURES
