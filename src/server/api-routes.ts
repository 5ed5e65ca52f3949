/** The routes that say what the agent knows now. */
import { z } from 'zod'
import type { AgentState, History, LongHistory } from '../core/kinds.ts'
import type { GpuEvent } from '../core/model.ts'
import { type Route, route } from '../core/route.ts'
import { VERSION } from '../core/version.ts'
import { type MetricsFormat, metricsFormat } from './accept.ts'
import { findGpu, GPU_FILTER, knownGpus } from './gpu-name.ts'
import { historyRoute, hostHistoryRoute } from './history-route.ts'
import { readiness, reasonOf } from './readiness.ts'
import { type Health, SCHEMAS } from './schemas.ts'
import { chooseScope } from './scope.ts'
import type { Stream } from './stream.ts'
import { streamRoute } from './stream-route.ts'

export interface MetricsText {
  render(format: MetricsFormat): string
  contentType(format: MetricsFormat): string
}

export interface ApiOptions {
  readonly state: AgentState
  readonly history: History | LongHistory
  readonly metrics: MetricsText
  readonly stream: Stream
  readonly extraHealth: () => Readonly<Record<string, unknown>>
}

const nothing = z.strictObject({})

const eventQuery = z.strictObject({
  from: z.string().optional().describe('Epoch milliseconds, ISO 8601, or relative like -1h; by default everything that is kept'),
  to: z.string().optional().describe('Like `from`; by default no end'),
  gpu: GPU_FILTER,
})
type EventQuery = z.infer<typeof eventQuery>

export const aliveRoute: Route = route({
  method: 'GET',
  path: '/healthz',
  summary: 'Whether the process serves, and what it is',
  answer: SCHEMAS.Alive,
  open: true,
  handler: () => ({ status: 'ok', name: 'gpuwarden', version: VERSION }),
})

export function metricsRoute(metrics: MetricsText): Route {
  return route({
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics for Prometheus, in its text format or in OpenMetrics',
    answer: z.string(),
    answerType: 'text/plain',
    handler({ header, reply }) {
      const format = metricsFormat(header('accept'))
      return reply({ type: metrics.contentType(format), body: metrics.render(format), headers: { vary: 'Accept' } })
    },
  })
}

export function apiRoutes({ state, history, metrics, stream, extraHealth }: ApiOptions): readonly Route[] {
  return [
    aliveRoute,
    route({
      method: 'GET',
      path: '/readyz',
      summary: 'Whether current readings are available, status 503 when not; and which sources give none, with the reasons',
      answer: SCHEMAS.Readiness,
      open: true,
      handler({ reply }) {
        const answer = readiness(state.health(), state.now())
        if (answer.status === 'ready') return answer
        return reply({ status: 503, body: JSON.stringify(answer), expected: true })
      },
    }),
    metricsRoute(metrics),
    route({
      method: 'GET',
      path: '/api/v1/gpus',
      summary: 'All GPUs with their last readings and the age of these',
      query: nothing,
      answer: SCHEMAS.Gpus,
      handler: () => ({ at: state.now(), gpus: state.gpus() }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/gpus/:label',
      summary: 'One GPU, by label, index or id',
      query: nothing,
      answer: SCHEMAS.GpuView,
      errors: ['unknown_gpu'],
      handler({ params: { label = '' }, refuse }) {
        const gpus = state.gpus()
        const name = JSON.stringify(label.slice(0, 60))
        return findGpu(gpus, label) ?? refuse('unknown_gpu', `No GPU has the label, index or id ${name}.`, knownGpus(gpus))
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/processes',
      summary: 'Processes on the GPUs, with their owners',
      query: nothing,
      answer: SCHEMAS.Processes,
      handler: () => ({ at: state.now(), processes: state.processes() }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/host',
      summary: 'Processor, memory and disk of this host',
      query: nothing,
      answer: SCHEMAS.Host,
      handler: () => ({ at: state.now(), host: state.host() }),
    }),
    historyRoute({ state, history }),
    hostHistoryRoute({ state, history }),
    route({
      method: 'GET',
      path: '/api/v1/health',
      summary: 'How the sources and the agent itself are doing',
      query: nothing,
      answer: SCHEMAS.Health,
      handler: () => health(state, stream, extraHealth()),
    }),
    route<EventQuery>({
      method: 'GET',
      path: '/api/v1/events',
      summary: 'Recent events of the GPUs (XIDs, ECC errors, lost GPUs), oldest first',
      query: eventQuery,
      answer: SCHEMAS.Events,
      errors: ['invalid_gpu', 'invalid_time', 'invalid_range'],
      handler(context) {
        const scope = chooseScope(context, state)
        if (!('from' in scope)) return scope
        const { from, gpu } = scope
        // A recording may be from a time in the future here: only a request with an end gets one.
        const to = context.query.to === undefined ? Number.POSITIVE_INFINITY : scope.to
        // An event without a GPU may belong to any of them.
        const concerns = (event: GpuEvent) => gpu === null || event.gpu === null || event.gpu === gpu
        const events = state.events().filter((event) => event.at >= from && event.at <= to && concerns(event))
        return { at: state.now(), events }
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/findings',
      summary: 'Active findings of the detectors',
      query: nothing,
      answer: SCHEMAS.Findings,
      handler: () => ({ at: state.now(), findings: state.findings() }),
    }),
    streamRoute({ state, stream }),
  ]
}

/** A room reports it itself, such as the store while it cannot write. */
function isDegraded(room: unknown): boolean {
  return typeof room === 'object' && room !== null && 'state' in room && room.state === 'degraded'
}

function health(state: AgentState, stream: Stream, rooms: Readonly<Record<string, unknown>>): Health {
  const at = state.now()
  const sources = state.health()
  const isSilent = sources.length === 0 || sources.some((source) => source.state !== 'ended' && reasonOf(source, at) !== null)
  const lacksDriver = state.gpus().some(({ sample }) => sample?.state === 'no_driver')
  return {
    status: isSilent || lacksDriver || Object.values(rooms).some(isDegraded) ? 'degraded' : 'ok',
    at,
    hostname: state.hostname,
    sources: sources.map((source) => ({
      ...source,
      ageMs: source.lastSampleAt === null ? null : Math.max(0, at - source.lastSampleAt),
    })),
    sinks: [...state.sinks()],
    self: state.self(),
    stream: stream.health(),
    rooms: { ...rooms },
  }
}
