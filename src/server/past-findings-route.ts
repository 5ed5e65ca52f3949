/** GET /api/v1/findings/history: what the detectors have found, also what is over. */
import { z } from 'zod'
import type { AgentState } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import { type Route, route } from '../core/route.ts'
import { filterGpu, GPU_FILTER } from './gpu-name.ts'
import { SCHEMAS } from './schemas.ts'
import { chooseRange } from './time-range.ts'

const DEFAULT_LIMIT = 200
const MOST = 1000

export interface PastFindings {
  /** One per trouble, the newest first; null: all. */
  query(query: PastFindingsQuery): readonly Finding[]
}

export interface PastFindingsQuery {
  readonly from: number
  readonly to: number
  /** GpuInfo.id */
  readonly gpu: string | null
  readonly run: string | null
  readonly limit: number
}

const query = z.strictObject({
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -1h; everything that is kept by default'),
  to: z.string().optional().describe('As `from`; now by default'),
  gpu: GPU_FILTER,
  run: z.string().optional().describe('Only of this training run, by id'),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, `expected a number from 1 to ${MOST}`)
    .transform(Number)
    .refine((limit) => limit <= MOST, `expected a number from 1 to ${MOST}`)
    .optional()
    .describe(`How many at most; ${DEFAULT_LIMIT} by default, ${MOST} at most`),
})
type Query = z.infer<typeof query>

export function pastFindingsRoute({ state, past }: { readonly state: AgentState; readonly past: PastFindings }): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/findings/history',
    summary: 'What the detectors have found: each trouble once, with its last statement and its end, newest first',
    query,
    answer: SCHEMAS.Findings,
    errors: ['invalid_gpu', 'invalid_time', 'invalid_range'],
    handler(context) {
      const range = chooseRange(context, state.now(), Number.POSITIVE_INFINITY)
      if (!('from' in range)) return range
      const gpu = filterGpu(context, state.gpus())
      if (typeof gpu === 'object' && gpu !== null) return gpu
      const { run = null, limit = DEFAULT_LIMIT } = context.query
      return { at: state.now(), findings: past.query({ ...range, gpu, run, limit }) }
    },
  })
}
