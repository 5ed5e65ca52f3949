import { z } from 'zod'
import { type Settings, setting } from '../core/setting.ts'

export const logSettings = {
  'log.level': setting<'debug' | 'info' | 'warn' | 'error' | 'silent'>({
    schema: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
    default: 'info',
    flag: '--log-level <level>',
    help: 'how much goes into gpu_monitor.log: debug, info, warn, error or silent',
  }),
  'log.stderr': setting({ schema: z.boolean(), default: false, flag: '--log-stderr', help: 'write the log to standard error as well' }),
  'log.max_mb': setting({ schema: z.number().min(1), default: 16, help: 'gpu_monitor.log is renamed to gpu_monitor.log.1 at this size' }),
} satisfies Settings
