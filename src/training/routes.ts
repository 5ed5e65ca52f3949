/** The routes that SDKs post to. */
import { z } from 'zod'
import { keptHyperparameters } from '../core/hyperparameters.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import type { RunModel } from '../core/run-model.ts'
import { BATCH_LIMIT_BYTES, readBatch } from './body.ts'
import { readingRoutes, unknownRun } from './reading-routes.ts'
import { newRunId } from './run-id.ts'
import type { RunPost } from './run-record.ts'
import { ended, runEnd, runPost, runPosted, runReport, shorten, signQuery, stepsPosted } from './schemas.ts'
import type { Training } from './training-contract.ts'

const REPORT_LIMIT_BYTES = 256 * 1024
const RUN_LIMIT_BYTES = 64 * 1024
/** Bodies that wait for the disk; above this the sender must wait. */
const WAITING_LIMIT_BYTES = 64 * 1024 * 1024

type Refuse = Pick<RouteContext, 'refuse'>

export function trainingRoutes(training: Training, now: () => number): readonly Route[] {
  let waiting = 0

  /** An error of the disk is for the sender to wait out, not an error of the request. */
  async function durably<T>({ refuse, log }: Refuse & Pick<RouteContext, 'log'>, work: () => Promise<T>): Promise<T | Reply> {
    try {
      return await work()
    } catch (error) {
      log.warn({ err: error }, 'data of a training run could not be written')
      const hint = 'Send it again: duplicates are recognized.'
      return refuse('unavailable', `It cannot be written now: ${(error as Error).message}`, hint, { 'retry-after': '2' })
    }
  }

  return [
    route({
      method: 'POST',
      path: '/api/v1/runs',
      summary: 'Announces a training run; again for each rank, and after a restart',
      body: runPost,
      bodyLimitBytes: RUN_LIMIT_BYTES,
      answer: runPosted,
      errors: ['unavailable'],
      handler: async ({ body, ...context }) =>
        durably(context, async () => {
          const { run, created } = await training.postRun(runOf(body as z.infer<typeof runPost>))
          return { id: run.id, name: run.name, created }
        }),
    }),
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/steps',
      summary: `Takes steps, one JSON object per line (application/x-ndjson, gzip or not, at most ${BATCH_LIMIT_BYTES} bytes)`,
      query: signQuery as unknown as z.ZodType<unknown>,
      answer: stepsPosted,
      errors: ['unknown_run', 'invalid_body', 'body_too_large', 'unsupported_media_type', 'too_many_requests', 'unavailable'],
      handler: async (context) => {
        const { params, query, raw, refuse } = context
        // The rest of a body that was not read must not be taken for the next request.
        const close = { connection: 'close' }
        if (waiting > WAITING_LIMIT_BYTES)
          return refuse('too_many_requests', 'Too much data is waiting for the disk.', 'Send it again in a second.', {
            ...close,
            'retry-after': '1',
          })
        const body = await readBatch(raw.incoming)
        if (!body.ok) return refuse(body.code, body.message, body.hint, close)
        waiting += body.bytes.length
        try {
          return await durably(
            context,
            async () =>
              (await training.postSteps(params.id ?? '', body.bytes, (query as z.infer<typeof signQuery>).rank)) ?? unknownRun(context),
          )
        } finally {
          waiting -= body.bytes.length
        }
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/end',
      summary: 'Ends a run, or one rank of it',
      body: runEnd,
      bodyLimitBytes: RUN_LIMIT_BYTES,
      answer: ended,
      errors: ['unknown_run', 'unavailable'],
      handler: async ({ params, body, ...context }) =>
        durably(context, async () => {
          const { outcome, message, ended_at, rank } = body as z.infer<typeof runEnd>
          const end = { outcome, message: message ? shorten(message) : null, endedAt: ended_at ?? now(), rank: rank ?? null }
          const run = await training.endRun(params.id ?? '', end)
          return run ? { id: run.id, outcome: run.outcome, endedAt: run.endedAt } : unknownRun(context)
        }),
    }),
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/report',
      summary: 'Takes the out-of-memory report of a run; the last one is kept with the run',
      body: runReport as unknown as z.ZodType<unknown>,
      bodyAs: 'text',
      bodyLimitBytes: REPORT_LIMIT_BYTES,
      answer: z.object({ id: z.string() }),
      errors: ['unknown_run', 'unavailable'],
      handler: async ({ params, body, ...context }) =>
        durably(context, async () => {
          const id = params.id ?? ''
          return (await training.keepReport(id, body as Record<string, unknown>)) ? { id } : unknownRun(context)
        }),
    }),
    ...readingRoutes(training, now),
  ] as readonly Route[]
}

function modelOf(sent: NonNullable<z.infer<typeof runPost>['model']>): RunModel {
  return {
    parameters: sent.parameters ?? null,
    activeParameters: sent.active_parameters ?? null,
    flopsPerToken: sent.flops_per_token ?? null,
    flopsPerSample: sent.flops_per_sample ?? null,
    computeType: sent.compute_type ?? null,
  }
}

export function runOf(body: z.infer<typeof runPost>): RunPost {
  const { command } = body
  return {
    id: body.id ?? newRunId(),
    name: body.name,
    host: body.host ?? null,
    user: body.user ?? null,
    pid: body.pid ?? null,
    command: command === undefined || command === null ? null : shorten(typeof command === 'string' ? command : command.join(' ')),
    gitCommit: body.git_commit ?? null,
    framework: body.framework ?? null,
    hyperparameters: keptHyperparameters(body.hyperparameters),
    loader: body.data_loader
      ? { workers: body.data_loader.workers, isPinned: body.data_loader.pinned_memory, cpus: body.data_loader.cpus ?? null }
      : null,
    worldSize: body.world_size ?? null,
    totalSteps: body.total_steps ?? null,
    gpus: (body.gpus ?? []).map(String),
    startedAt: body.started_at ?? null,
    correlationId: body.correlation_id ?? null,
    canRecord: body.can_record ?? null,
    model: body.model ? modelOf(body.model) : null,
    rank: body.rank ?? null,
    canTellStacks: body.can_tell_stacks ?? null,
  }
}
