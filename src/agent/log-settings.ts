import { z } from 'zod'
import { type Settings, setting } from '../core/setting.ts'

export const logSettings = {
  'log.level': setting<'debug' | 'info' | 'warn' | 'error' | 'silent'>(
    z.enum(['debug', 'info', 'warn', 'error', 'silent']),
    'info',
    'how much goes into gpu_monitor.log: debug, info, warn, error or silent',
    { flag: '--log-level <level>' },
  ),
  'log.stderr': setting(z.boolean(), false, 'write the log to standard error as well', { flag: '--log-stderr' }),
  'log.max_mb': setting(z.number().min(1), 16, 'gpu_monitor.log is renamed to gpu_monitor.log.1 at this size'),
} satisfies Settings
