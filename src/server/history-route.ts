/** GET /api/v1/history: parameters, checked one at a time. */
import { z } from 'zod'
import type { AgentState, History } from '../core/kinds.ts'
import type { GpuField } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import { chooseRange, type TimeRange } from '../core/time-range.ts'
import { chooseGpu, GPU_PARAMETER } from './gpu-name.ts'
import { SCHEMAS } from './schemas.ts'

const DEFAULT_RANGE_MS = 5 * 60_000
const MOST_POINTS = 50_000
const KNOWN: ReadonlySet<string> = new Set(GPU_FIELDS)

const query = z.strictObject({
  gpu: GPU_PARAMETER,
  field: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe('Names of readings, separated by commas or repeated: utilizationRatio,memoryUsedBytes'),
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -5m; by default five minutes before `to`'),
  to: z.string().optional().describe('Like `from`; by default now'),
  step: z.string().optional().describe('Seconds between points; by default the finest available'),
})

type Query = z.infer<typeof query>

export function historyRoute({ state, history }: { readonly state: AgentState; readonly history: History }): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/history',
    summary: 'Readings of one GPU over time, in columns',
    query,
    answer: SCHEMAS.HistoryAnswer,
    errors: ['invalid_gpu', 'invalid_field', 'invalid_time', 'invalid_range', 'invalid_step'],
    handler(context) {
      const gpu = chooseGpu(context, state.gpus())
      if (typeof gpu !== 'string') return gpu
      const fields = chooseFields(context)
      if (!Array.isArray(fields)) return fields
      const range = chooseSteps(context, state.now())
      if (!('from' in range)) return range
      const answer = history.query({ gpu, fields, ...range })
      // Plain JSON: columns hold readings only, and there can be very many.
      return context.reply({ body: JSON.stringify(answer) })
    },
  })
}

function chooseFields({ query: { field }, refuse }: RouteContext<Query>): GpuField[] | Reply {
  const names = [
    ...new Set(
      [field ?? []]
        .flat()
        .flatMap((part) => part.split(','))
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    ),
  ]
  if (names.length === 0) return refuse('missing_parameter', 'The parameter "field" is missing.', fieldHint())
  const unknown = names.find((name) => !KNOWN.has(name))
  if (unknown !== undefined)
    return refuse('invalid_field', `${JSON.stringify(unknown.slice(0, 60))} is not a reading of a GPU.`, fieldHint())
  return names as GpuField[]
}

function fieldHint(): string {
  return `Give one or more of: ${GPU_FIELDS.join(', ')}.`
}

interface Steps extends TimeRange {
  readonly stepMs: number | null
}

function chooseSteps(context: RouteContext<Query>, now: number): Steps | Reply {
  const { query: asked, refuse } = context
  const range = chooseRange(context, now, DEFAULT_RANGE_MS)
  if (!('from' in range)) return range
  const { from, to } = range
  if (asked.step === undefined) return { from, to, stepMs: null }
  const seconds = /^\d{1,9}(\.\d{1,6})?$/.test(asked.step) ? Number(asked.step) : 0
  if (seconds <= 0) return refuse('invalid_step', 'step must be a number of seconds greater than 0.', 'Give 1, 10, 60, … or leave it out.')
  const points = (to - from) / (seconds * 1000)
  if (points > MOST_POINTS) {
    const least = Math.ceil((to - from) / MOST_POINTS / 1000)
    return refuse(
      'invalid_step',
      `This would be ${Math.ceil(points)} points; the limit is ${MOST_POINTS}.`,
      `Give a step of ${least} or more.`,
    )
  }
  return { from, to, stepMs: seconds * 1000 }
}
