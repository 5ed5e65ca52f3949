import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

export const trainingSettings = {
  'training.max_runs': setting(
    z.number().int().min(1).max(10_000),
    256,
    'How many training runs are remembered and watched; beyond it, the one silent for longest is forgotten.',
  ),
  'training.checkpoint_seconds': setting(
    z.number().min(0.1).max(3600),
    10,
    'How often the progress of runs is saved, which keeps the journal of steps short.',
  ),
  'training.stale_hours': setting(
    z
      .number()
      .min(0)
      .max(24 * 365),
    24,
    'A training run without news for this long is closed as failed; 0: never. A run whose process is gone is closed after a minute.',
  ),
  'training.record_leaks': setting<boolean>(
    z.boolean(),
    true,
    'Ask a run that leaks to record for some steps which line of its code keeps the memory (Python SDK with PyTorch).',
  ),
  'training.nccl_ras_port': setting(
    z.number().int().min(0).max(65_535),
    28_028,
    'Where NCCL’s RAS service listens on this host. It is asked only while a run stands still; 0: never.',
  ),
} satisfies Settings

export type TrainingValues = ValuesOf<typeof trainingSettings>

export const TRAINING_DEFAULTS: TrainingValues = {
  'training.max_runs': trainingSettings['training.max_runs'].default,
  'training.checkpoint_seconds': trainingSettings['training.checkpoint_seconds'].default,
  'training.stale_hours': trainingSettings['training.stale_hours'].default,
  'training.record_leaks': trainingSettings['training.record_leaks'].default,
  'training.nccl_ras_port': trainingSettings['training.nccl_ras_port'].default,
}
