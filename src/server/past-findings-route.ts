/** GET /api/v1/findings/history: findings of the detectors, also those that are over. */
import { z } from 'zod'
import type { AgentState } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import { type Route, route } from '../core/route.ts'
import { GPU_FILTER } from './gpu-name.ts'
import { SCHEMAS } from './schemas.ts'
import { chooseScope, type Scope } from './scope.ts'

const DEFAULT_LIMIT = 200
const MOST = 1000

export interface PastFindings {
  /** One per problem, newest first; null: all. */
  query(query: PastFindingsQuery): readonly Finding[]
}

export interface PastFindingsQuery extends Scope {
  readonly run: string | null
  readonly limit: number
}

const query = z.strictObject({
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -1h; by default everything that is kept'),
  to: z.string().optional().describe('Like `from`; by default now'),
  gpu: GPU_FILTER,
  run: z.string().optional().describe('Only findings of this training run, by id'),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, `expected a number from 1 to ${MOST}`)
    .transform(Number)
    .refine((limit) => limit <= MOST, `expected a number from 1 to ${MOST}`)
    .optional()
    .describe(`Most findings to return; ${DEFAULT_LIMIT} by default, at most ${MOST}`),
})
type Query = z.infer<typeof query>

export function pastFindingsRoute({ state, past }: { readonly state: AgentState; readonly past: PastFindings }): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/findings/history',
    summary: 'Findings of the detectors, past ones too: each problem once, with its last finding and its end, newest first',
    query,
    answer: SCHEMAS.Findings,
    errors: ['invalid_gpu', 'invalid_time', 'invalid_range'],
    handler(context) {
      const scope = chooseScope(context, state)
      if (!('from' in scope)) return scope
      const { run = null, limit = DEFAULT_LIMIT } = context.query
      return { at: state.now(), findings: past.query({ ...scope, run, limit }) }
    },
  })
}
