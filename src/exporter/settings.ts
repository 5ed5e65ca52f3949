import { z } from 'zod'
import { type Settings, setting } from '../core/setting.ts'
import type { MetricSet } from './exporter.ts'

const SETS = ['native', 'dcgm', 'nvidia_smi'] as const satisfies readonly MetricSet[]

const setName = z.enum(SETS, {
  error: ({ input }) => `unknown metric set ${JSON.stringify(input)}: expected ${SETS.join(', ')}, or several, comma-separated`,
})

/** `native,dcgm` from a flag or a variable, a list from the file. */
const setList = z.preprocess(
  (value) => (typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value),
  z
    .array(setName)
    .min(1, `no metric set given: expected ${SETS.join(', ')}`)
    .transform((names): readonly MetricSet[] => [...new Set(names)]),
)

export const exporterSettings = {
  'metrics.sets': setting<readonly MetricSet[]>(
    setList,
    ['native'],
    'Names to publish at /metrics: native, dcgm (as the DCGM exporter), nvidia_smi (as nvidia_gpu_exporter), comma-separated.',
    { flag: '--metrics <sets>' },
  ),
  'metrics.max_processes': setting(
    z.coerce.number().int().min(0).max(4096),
    64,
    'How many GPU processes /metrics lists, over all GPUs; the rest is summed as one.',
  ),
} satisfies Settings
