/** GET /api/v1/usage */
import { z } from 'zod'
import { type Route, route } from '../core/route.ts'
import { chooseRange } from '../core/time-range.ts'
import { usageCsv } from './csv.ts'
import { GROUPINGS } from './summary.ts'
import type { Usage } from './usage.ts'

const DEFAULT_RANGE_MS = 30 * 86_400_000

const query = z.strictObject({
  by: z.enum(GROUPINGS).optional().describe('What is added up: user (default), job, run, gpu or day'),
  from: z
    .string()
    .optional()
    .describe('Epoch milliseconds, ISO 8601, or relative like -7d; by default 30 days before `to`. Whole hours count'),
  to: z.string().optional().describe('Like `from`; by default now'),
  user: z.string().min(1).optional().describe('Only use by this user'),
  simulated: z
    .enum(['yes', 'no'])
    .optional()
    .describe('Use of simulated GPUs, or of real ones; by default of real ones, or of simulated ones where there is no other'),
  format: z.enum(['json', 'csv']).optional().describe('csv: the groups as a table'),
})
type Query = z.infer<typeof query>

const hours = z.number()
const known = z.number().nullable()
const figures = {
  gpuHours: hours.describe('GPU-hours held; a part of a card counts as its share of the card'),
  busyHours: known.describe('GPU-hours × utilization; null: not known'),
  busyRatio: known.describe('Utilization of the held time'),
  smHours: known.describe('GPU-hours × SM activity, where the card tells it'),
  smRatio: known,
  memoryGibHours: hours.describe('GiB of GPU memory held × hours'),
  energyKwh: known,
  cost: known.describe('GPU-hours × price; null: no price is known'),
  idleHours: hours.describe('GPU-hours in which memory was held and nothing computed, beyond the first minute'),
  throttledHours: hours.describe('GPU-hours of work with clocks held down by heat or by the protection of the card'),
  lostOomHours: hours.describe('GPU-hours of runs that ran out of memory, since their last checkpoint'),
  lostDeadHours: hours.describe('GPU-hours of runs that died in another way, since their last checkpoint'),
}

const answer = z.strictObject({
  at: z.number(),
  fault: z.string().nullable().describe('Why usage is not kept on disk now'),
  from: z.number(),
  to: z.number(),
  by: z.enum(GROUPINGS),
  simulated: z.boolean().describe('All of it is of simulated GPUs; real ones are never mixed in'),
  hasOther: z.boolean().describe('There is also use of the other kind: ask with `simulated`'),
  costIsEstimate: z.boolean().describe('Costs are from list prices in US dollars'),
  total: z.strictObject(figures).describe('All that was held'),
  free: z.strictObject(figures).describe('Time in which nobody held the GPUs'),
  groups: z.array(
    z.strictObject({
      key: z.string().describe('User, job, run id, GPU id or day; empty: use without a job, or without a run'),
      label: z.string(),
      users: z.array(z.string()).describe('Whose it is, the most first; at most three'),
      ...figures,
      freeHours: known.describe('Time in which nobody held the GPUs, by GPU and by day'),
    }),
  ),
  moreGroups: z.number().int().describe('How many more groups there are, counted in `total` alone'),
  days: z.strictObject({
    at: z.array(z.string()).describe('Days in UTC'),
    series: z.array(z.strictObject({ key: z.string(), label: z.string(), gpuHours: z.array(hours) })),
    freeHours: z.array(hours),
  }),
})

/** `usage` null: nothing is counted. */
export function usageRoute(usage: Usage | null, now: () => number): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/usage',
    summary: 'Who held the GPUs for how long, how busy they were, and what was lost: by user, job, run, GPU or day',
    query,
    answer,
    errors: ['invalid_time', 'invalid_range', 'unavailable'],
    async handler(context) {
      const at = now()
      const range = chooseRange(context, at, DEFAULT_RANGE_MS)
      if (!('from' in range)) return range
      const { by = 'user', user = null, simulated, format } = context.query
      if (usage === null)
        return context.refuse('unavailable', 'Usage is not counted here.', 'It is off (usage.enabled), or a recording is shown.')
      try {
        const question = { ...range, by, user, simulated: simulated === undefined ? null : simulated === 'yes' }
        const summary = await usage.summary(question)
        if (format === 'csv') return context.reply({ type: 'text/csv; charset=utf-8', body: usageCsv(summary) })
        return { at, fault: usage.fault(), ...summary }
      } catch (error) {
        return context.refuse('unavailable', `Usage cannot be read now: ${(error as Error).message}`, 'Try again in a few seconds.')
      }
    },
  })
}
