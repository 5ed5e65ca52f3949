import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

export const storeSettings = {
  'log.enabled': setting({ schema: z.boolean(), default: true, help: 'Write readings to JSONL files.' }),
  'log.dir': setting({
    schema: z.string().min(1),
    default: './gpu_logs',
    help: 'Folder of the JSONL files; created if missing.',
    flag: '--log-dir <dir>',
  }),
  'log.rotate_mb': setting({
    schema: z.number().positive(),
    default: 64,
    help: 'A file is closed and a new one started at this size (1 MB = 1024×1024 bytes).',
  }),
  'log.rotate_hours': setting({ schema: z.number().positive(), default: 24, help: 'A file is closed and a new one started at this age.' }),
  'log.compress': setting({ schema: z.boolean(), default: true, help: 'Compress closed files with gzip.' }),
  'log.keep_days': setting({
    schema: z.number().min(0),
    default: 30,
    help: 'Closed files older than this, counted from the newest one, are deleted, at most one a minute; 0: never.',
  }),
  'log.keep_total_mb': setting({
    schema: z.number().min(0),
    default: 2048,
    help: 'The oldest closed files are deleted, at most one a minute, while the total is above this; 0: no limit.',
  }),
  'log.batch_samples': setting({ schema: z.number().int().min(1), default: 60, help: 'Write to disk after this many samples …' }),
  'log.batch_seconds': setting({ schema: z.number().positive(), default: 5, help: '… or after this many seconds, whichever comes first.' }),
  'log.buffer_mb': setting({
    schema: z.number().positive(),
    default: 8,
    help: 'How much waits in memory while the disk cannot be written; beyond it the oldest lines are dropped and counted.',
  }),
  'history.samples': setting({
    schema: z.number().int().min(2).max(100_000),
    default: 300,
    help: 'Samples of each GPU kept in memory at full rate; up to 3300 if they cover less than five minutes.',
  }),
  'history.hours': setting({
    schema: z.number().min(1).max(168),
    default: 24,
    help: 'Hours of per-minute mean, minimum and maximum kept in memory for each GPU.',
  }),
} satisfies Settings

export type StoreValues = ValuesOf<typeof storeSettings>
