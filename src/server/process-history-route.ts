/** GET /api/v1/processes/history: the GPU memory of each process, over time. */
import { z } from 'zod'
import type { AgentState, ProcessHistoryAnswer } from '../core/kinds.ts'
import { type Route, route } from '../core/route.ts'
import { chooseRange } from '../core/time-range.ts'
import { chooseGpu, GPU_PARAMETER } from './gpu-name.ts'

const DEFAULT_RANGE_MS = 60 * 60_000

export interface ProcessHistory {
  query(query: { readonly gpu: string; readonly from: number; readonly to: number }): ProcessHistoryAnswer
}

const query = z.strictObject({
  gpu: GPU_PARAMETER,
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -5m; by default one hour before `to`'),
  to: z.string().optional().describe('Like `from`; by default now'),
})
type Query = z.infer<typeof query>

const text = z.string().nullable()

export function processHistoryRoute({ state, past }: { readonly state: AgentState; readonly past: ProcessHistory }): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/processes/history',
    summary: 'GPU memory of each process over time, in columns',
    query,
    answer: z.strictObject({
      gpu: z.string(),
      stepMs: z.number(),
      at: z.array(z.number()).describe('Start of each step, epoch milliseconds'),
      processes: z.array(
        z.strictObject({
          pid: z.number().int(),
          startedAt: z.number().nullable(),
          user: text,
          name: text,
          command: text,
          memoryUsedBytes: z.array(z.number().nullable()).describe('The most in each step; null where it was not there'),
        }),
      ),
    }),
    errors: ['invalid_gpu', 'invalid_time', 'invalid_range'],
    handler(context) {
      const gpu = chooseGpu(context, state.gpus())
      if (typeof gpu !== 'string') return gpu
      const range = chooseRange(context, state.now(), DEFAULT_RANGE_MS)
      if (!('from' in range)) return range
      // Plain JSON: columns hold readings only, and there can be very many.
      return context.reply({ body: JSON.stringify(past.query({ gpu, ...range })) })
    },
  })
}
