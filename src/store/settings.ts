import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

export const storeSettings = {
  'log.enabled': setting({ schema: z.boolean(), default: true, help: 'Write samples, events and findings to JSONL files.' }),
  'log.dir': setting({
    schema: z.string().min(1),
    default: './gpu_logs',
    help: 'Folder of the JSONL files; created when it is missing.',
    flag: '--log-dir <dir>',
  }),
  'log.rotate_mb': setting({
    schema: z.number().positive(),
    default: 64,
    help: 'Start a new file at this size (1 MB = 1024×1024 bytes).',
  }),
  'log.rotate_hours': setting({ schema: z.number().positive(), default: 24, help: 'Start a new file at this age.' }),
  'log.compress': setting({ schema: z.boolean(), default: true, help: 'Compress closed files with gzip.' }),
  'log.keep_days': setting({ schema: z.number().min(0), default: 30, help: 'Delete closed files older than this; 0 keeps them.' }),
  'log.keep_total_mb': setting({
    schema: z.number().min(0),
    default: 2048,
    help: 'Delete the oldest closed files while all together exceed this size; 0: no limit.',
  }),
  'log.batch_samples': setting({ schema: z.number().int().min(1), default: 60, help: 'Write to disk after this many samples …' }),
  'log.batch_seconds': setting({ schema: z.number().positive(), default: 5, help: '… or after this many seconds, whichever comes first.' }),
  'log.buffer_mb': setting({
    schema: z.number().positive(),
    default: 8,
    help: 'Most memory for lines that wait while the disk cannot be written; above that, the oldest lines are dropped and counted.',
  }),
  'history.samples': setting({
    schema: z.number().int().min(2).max(100_000),
    default: 300,
    help: 'Samples of each GPU kept in memory at full rate; up to 3300 where that is less than five minutes.',
  }),
  'history.hours': setting({
    schema: z.number().min(1).max(168),
    default: 24,
    help: 'Hours of per-minute mean, minimum and maximum kept in memory for each GPU.',
  }),
} satisfies Settings

export type StoreValues = ValuesOf<typeof storeSettings>
