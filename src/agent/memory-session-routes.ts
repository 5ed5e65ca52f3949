/** /api/v1/sampling and /api/v1/memory/sessions: reading more often for a while, and looking at memory for a while. */
import { z } from 'zod'
import { type Route, type RouteContext, route } from '../core/route.ts'
import { type MemorySession, type MemorySessions, SESSION_MS } from './memory-sessions.ts'
import type { SamplingPace } from './sampling-pace.ts'

const LONGEST_BODY_BYTES = 8192
const interval = z.number().min(0.1).max(3600).describe('Seconds between samples; shorter than configured counts, longer does not')

const paceBody = z.strictObject({
  asker: z.string().min(1).max(100).describe('Who asks: the same again replaces what it asked before'),
  interval_seconds: interval,
  for_seconds: z.number().min(0).max(60).describe('Goes back after this time unless asked again; 0: now'),
})
const paceAnswer = z.object({
  interval_seconds: z.number().describe('How often is read now'),
  own_interval_seconds: z.number().describe('As configured'),
})

const sessionBody = z.strictObject({
  devices: z.array(z.number().int().min(0)).max(1024).nullish().describe('Indices of GPUs; all by default'),
  interval_seconds: interval.nullish(),
  oom_threshold: z.number().gt(0).max(100).default(85).describe('Percent of the memory from which the level alone is a warning'),
  leak_threshold_mb: z.number().min(0).default(100).describe('Growth below it is no leak'),
})
const sessionOpened = z.object({ id: z.string(), expires_seconds: z.number().describe('Without a request for so long it ends') })
const reportQuery = z.strictObject({ since: z.coerce.number().default(0).describe('Samples after this time, epoch milliseconds') })
const report = z.looseObject({ timestamp: z.string(), devices: z.record(z.string(), z.looseObject({})) })
const PATH = '/api/v1/memory/sessions/:id'

export function memorySessionRoutes(sessions: MemorySessions, pace: SamplingPace): readonly Route[] {
  function inSession({ params, refuse }: Pick<RouteContext, 'params' | 'refuse'>, work: (session: MemorySession) => unknown): unknown {
    const session = sessions.find(params.id ?? '')
    return session
      ? work(session)
      : refuse('unknown_session', 'There is no such memory session.', 'Begin one with POST /api/v1/memory/sessions.')
  }

  return [
    route<unknown, z.infer<typeof paceBody>>({
      method: 'POST',
      path: '/api/v1/sampling',
      summary: 'Reads the GPUs more often than configured, for a while',
      body: paceBody,
      bodyLimitBytes: LONGEST_BODY_BYTES,
      answer: paceAnswer,
      errors: ['too_many_requests'],
      handler({ body: { asker, interval_seconds, for_seconds }, refuse }) {
        const key = `asked ${asker}`
        const intervalMs = for_seconds === 0 ? pace.release(key) : pace.ask(key, interval_seconds * 1000, for_seconds * 1000)
        if (intervalMs === null) return refuse('too_many_requests', 'Too many programs ask for samples.', 'Try again in a minute.')
        return { interval_seconds: intervalMs / 1000, own_interval_seconds: pace.ownMs / 1000 }
      },
    }),
    route<unknown, z.infer<typeof sessionBody>>({
      method: 'POST',
      path: '/api/v1/memory/sessions',
      summary: 'Begins to look at the memory of the GPUs: use, forecasts, leaks, fragmentation',
      body: sessionBody as z.ZodType<z.infer<typeof sessionBody>>,
      bodyLimitBytes: LONGEST_BODY_BYTES,
      answer: sessionOpened,
      errors: ['too_many_requests'],
      handler({ body, refuse }) {
        const id = sessions.open({
          devices: body.devices ?? null,
          intervalMs: body.interval_seconds == null ? null : body.interval_seconds * 1000,
          oomThresholdPercent: body.oom_threshold,
          leakThresholdMegabytes: body.leak_threshold_mb,
        })
        if (id === null) return refuse('too_many_requests', 'There are too many memory sessions.', 'End one, or wait until one expires.')
        return { id, expires_seconds: SESSION_MS / 1000 }
      },
    }),
    route<z.infer<typeof reportQuery>>({
      method: 'GET',
      path: PATH,
      summary: 'What the session has seen: the memory status report, forecasts, leaks, what memory is used for',
      query: reportQuery,
      answer: report,
      errors: ['unknown_session'],
      handler: (context) => inSession(context, (session) => session.report(context.query.since)),
    }),
    route({
      method: 'GET',
      path: `${PATH}/report.html`,
      summary: 'The same as a page with charts',
      answer: z.string(),
      answerType: 'text/html',
      errors: ['unknown_session'],
      handler: (context) => inSession(context, (session) => context.reply({ type: 'text/html; charset=utf-8', body: session.html() })),
    }),
    route({
      method: 'GET',
      path: `${PATH}/report.txt`,
      summary: 'The same as text',
      answer: z.string(),
      answerType: 'text/plain',
      errors: ['unknown_session'],
      handler: (context) => inSession(context, (session) => context.reply({ type: 'text/plain; charset=utf-8', body: session.text() })),
    }),
    route({
      method: 'DELETE',
      path: PATH,
      summary: 'Ends a memory session',
      answer: z.object({ id: z.string() }),
      errors: ['unknown_session'],
      handler: (context) =>
        inSession(context, () => {
          const id = context.params.id ?? ''
          sessions.end(id)
          return { id }
        }),
    }),
  ] as readonly Route[]
}
