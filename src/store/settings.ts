import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

export const storeSettings = {
  'log.enabled': setting(z.boolean(), true, 'Write readings to JSONL files.'),
  'log.dir': setting(z.string().min(1), './gpu_logs', 'Folder of the JSONL files; created if missing.', { flag: '--log-dir <dir>' }),
  'log.rotate_mb': setting(z.number().positive(), 64, 'A file is closed and a new one started at this size (1 MB = 1024×1024 bytes).'),
  'log.rotate_hours': setting(z.number().positive(), 24, 'A file is closed and a new one started at this age.'),
  'log.compress': setting(z.boolean(), true, 'Compress closed files with gzip.'),
  'log.keep_days': setting(
    z.number().min(0),
    30,
    'Closed files older than this, counted from the newest one, are deleted, at most one a minute; 0: never.',
  ),
  'log.keep_total_mb': setting(
    z.number().min(0),
    2048,
    'The oldest closed files are deleted, at most one a minute, while the total is above this; 0: no limit.',
  ),
  'log.batch_samples': setting(z.number().int().min(1), 60, 'Write to disk after this many samples …'),
  'log.batch_seconds': setting(z.number().positive(), 5, '… or after this many seconds, whichever comes first.'),
  'log.buffer_mb': setting(
    z.number().positive(),
    8,
    'How much waits in memory while the disk cannot be written; beyond it the oldest lines are dropped and counted.',
  ),
  'history.samples': setting(
    z.number().int().min(2).max(100_000),
    300,
    'Samples of each GPU kept in memory at full rate; up to 3300 if they cover less than five minutes.',
  ),
  'history.hours': setting(z.number().min(1).max(168), 24, 'Hours of per-minute mean, minimum and maximum kept in memory for each GPU.'),
  'history.records': setting(
    z.boolean(),
    true,
    'Keep records of 10 seconds, 1 minute, 15 minutes and 1 hour on disk, in log.dir/history; needs log.enabled.',
  ),
  'history.keep_10s_days': setting(
    z.number().min(0),
    14,
    'Records of 10 seconds older than this, counted from the newest, are deleted, at most one file a minute; 0: never.',
  ),
  'history.keep_days': setting(z.number().min(0), 400, 'The same for records of 1 minute, 15 minutes and 1 hour; 0: never.'),
  'history.keep_total_mb': setting(
    z.number().min(0),
    2048,
    'The oldest records are deleted, at most one file a minute, while all together are above this; 0: no limit.',
  ),
} satisfies Settings

export type StoreValues = ValuesOf<typeof storeSettings>
