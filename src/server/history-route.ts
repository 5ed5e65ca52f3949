/** GET /api/v1/history and /api/v1/host/history: parameters, checked one at a time. */
import { z } from 'zod'
import { type AgentState, type History, type HistoryQuery, HOST_SERIES, type LongHistory, type SeriesField } from '../core/kinds.ts'
import { GPU_FIELDS, HOST_FIELDS } from '../core/record.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import { chooseRange, type TimeRange } from '../core/time-range.ts'
import { chooseGpu, findGpu, GPU_PARAMETER } from './gpu-name.ts'
import { SCHEMAS } from './schemas.ts'

const DEFAULT_RANGE_MS = 5 * 60_000
const MOST_POINTS = 50_000

const times = {
  field: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe('Names of readings, separated by commas or repeated: utilizationRatio,memoryUsedBytes'),
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -5m; by default five minutes before `to`'),
  to: z.string().optional().describe('Like `from`; by default now'),
  step: z.string().optional().describe('Seconds between points; by default the finest that suits the range'),
  points: z.string().optional().describe('At most so many points, 2 to 10000; steps grow to fit'),
}
const ofHost = z.strictObject(times)
const ofGpu = z.strictObject({ gpu: GPU_PARAMETER, ...times })

type HostQuery = z.infer<typeof ofHost>
type Query = z.infer<typeof ofGpu>

export interface HistoryRouteOptions {
  readonly state: AgentState
  readonly history: History | LongHistory
}

const ERRORS = ['invalid_field', 'invalid_time', 'invalid_range', 'invalid_step'] as const

export function historyRoute({ state, history }: HistoryRouteOptions): Route<Query> {
  return route<Query>({
    method: 'GET',
    path: '/api/v1/history',
    summary: 'Readings of one GPU over time, in columns',
    query: ofGpu,
    answer: SCHEMAS.HistoryAnswer,
    errors: ['invalid_gpu', ...ERRORS],
    async handler(context) {
      const gone = await goneGpu(context.query.gpu, state, history)
      const gpu = gone ?? chooseGpu(context, state.gpus())
      return typeof gpu === 'string' ? answer(context, { gpu, known: GPU_FIELDS, owner: 'a GPU' }, state.now(), history) : gpu
    },
  })
}

export function hostHistoryRoute({ state, history }: HistoryRouteOptions): Route<HostQuery> {
  return route<HostQuery>({
    method: 'GET',
    path: '/api/v1/host/history',
    summary: 'Readings of this host over time, in columns; from the records on disk',
    query: ofHost,
    answer: SCHEMAS.HistoryAnswer,
    errors: [...ERRORS],
    handler: (context) => answer(context, { gpu: HOST_SERIES, known: HOST_FIELDS, owner: 'the host' }, state.now(), history),
  })
}

/** The id of a card that was taken out, of which there are records. */
async function goneGpu(name: string | undefined, state: AgentState, history: History | LongHistory): Promise<string | null> {
  if (name === undefined || !('devices' in history) || findGpu(state.gpus(), name)) return null
  return (await history.devices()).includes(name) ? name : null
}

interface Subject {
  readonly gpu: string
  readonly known: readonly SeriesField[]
  readonly owner: string
}

async function answer(context: RouteContext<HostQuery>, subject: Subject, now: number, history: History | LongHistory): Promise<Reply> {
  const fields = chooseFields(context, subject)
  if (!Array.isArray(fields)) return fields
  const range = chooseSteps(context, now)
  if (!('from' in range)) return range
  const query: HistoryQuery = { gpu: subject.gpu, fields, ...range }
  // Plain JSON: columns hold readings only, and there can be very many.
  return context.reply({ body: JSON.stringify(await history.query(query)) })
}

function chooseFields({ query: { field }, refuse }: RouteContext<HostQuery>, { known, owner }: Subject): SeriesField[] | Reply {
  const names = [
    ...new Set(
      [field ?? []]
        .flat()
        .flatMap((part) => part.split(','))
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    ),
  ]
  const hint = `Give one or more of: ${known.join(', ')}.`
  if (names.length === 0) return refuse('missing_parameter', 'The parameter "field" is missing.', hint)
  const unknown = names.find((name) => !(known as readonly string[]).includes(name))
  if (unknown !== undefined) return refuse('invalid_field', `${JSON.stringify(unknown.slice(0, 60))} is not a reading of ${owner}.`, hint)
  return names as SeriesField[]
}

interface Steps extends TimeRange {
  readonly stepMs: number | null
  readonly points?: number
}

function chooseSteps(context: RouteContext<HostQuery>, now: number): Steps | Reply {
  const { query: asked, refuse } = context
  const range = chooseRange(context, now, DEFAULT_RANGE_MS)
  if (!('from' in range)) return range
  const { from, to } = range
  if (asked.points !== undefined && !/^([2-9]|[1-9]\d{1,3}|10000)$/.test(asked.points))
    return refuse(
      'invalid_step',
      'points must be a whole number from 2 to 10000.',
      'Give about the width of the chart in pixels, or leave it out.',
    )
  const limit = asked.points === undefined ? {} : { points: Number(asked.points) }
  if (asked.step === undefined) return { from, to, stepMs: null, ...limit }
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
  return { from, to, stepMs: seconds * 1000, ...limit }
}
