/** The report of a run, for the browser: to download, or to view. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import { unknownRun, unlessStuck } from './reading-routes.ts'
import type { ReportKind } from './report-process.ts'
import type { Training } from './training-contract.ts'

const reportQuery = z.strictObject({ view: z.enum(['0', '1']).default('0').describe('1: to view, not to download') })

const TYPES: Readonly<Record<ReportKind, string>> = { html: 'text/html; charset=utf-8', json: 'application/json; charset=utf-8' }

export function reportRoutes(training: Training): readonly Route[] {
  const kinds: readonly ReportKind[] = ['html', 'json']
  return kinds.map((kind) =>
    route({
      method: 'GET',
      path: `/api/v1/runs/:id/report.${kind}`,
      summary: `The report of a run, as gpuwarden report --${kind} makes it`,
      query: reportQuery,
      answer: kind === 'html' ? z.string() : z.looseObject({}),
      answerType: TYPES[kind],
      errors: ['unknown_run', 'no_log', 'too_many_requests', 'unavailable'],
      handler: (context) => unlessStuck(context, () => answer(context, training, kind)),
    }),
  ) as readonly Route[]
}

async function answer(context: RouteContext, training: Training, kind: ReportKind): Promise<Reply> {
  const { params, refuse, log } = context
  const found = await training.find(params.id ?? '')
  if (!found) return unknownRun(context)
  const { id, correlationId } = found.run
  await training.flush()
  const made = await training.report(id, kind)
  if (made === null)
    return refuse('no_log', 'Nothing is logged here, so there is nothing to report.', 'Set log.enabled to true for the next run.')
  if (made.ok) return context.reply({ body: made.body, type: TYPES[kind], headers: headersOf(id, kind, made.body, context.query) })
  if (made.why === 'nothing')
    return refuse('no_log', `The log holds nothing of this run: ${made.message}`, 'It may have been rotated away.')
  if (made.why === 'busy') return refuse('too_many_requests', made.message, 'Try again in a few seconds.', { 'retry-after': '5' })
  const correlated = correlationId === null ? {} : { correlation_id: correlationId }
  log.warn({ run: id, ...correlated, why: made.why, reason: made.message }, 'the report of a run could not be made')
  const hint = `On the machine itself: gpuwarden report ${id} --log-dir ${training.logDir} --${kind}.`
  return refuse('unavailable', `The report could not be made: ${made.message}`, hint)
}

function headersOf(id: string, kind: ReportKind, body: Buffer, query: unknown): Record<string, string> {
  const { view } = query as z.infer<typeof reportQuery>
  if (view !== '1') return { 'content-disposition': `attachment; filename="gpuwarden-${id.replaceAll(':', '-')}.${kind}"` }
  return kind === 'json' ? {} : { 'content-security-policy': viewPolicy(body) }
}

/** Only the report's own script runs, by its hash and sandboxed: the last script element is ours, and a run's text has its `<` escaped. */
function viewPolicy(body: Buffer): string {
  const from = body.lastIndexOf('<script>') + '<script>'.length
  const script = body.subarray(from, body.indexOf('</script>', from))
  const hash = createHash('sha256').update(script).digest('base64')
  return [
    'sandbox allow-scripts',
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
