/** What screens ask of runs. */
import type { z } from 'zod'
import { DiskStuck } from '../core/disk-lane.ts'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import { etaSeconds } from './listed-figures.ts'
import type { Progress } from './progress.ts'
import { rankRows } from './rank-progress.ts'
import type { ListedRun } from './registry.ts'
import { leakLinesOf, type RunRecord } from './run-record.ts'
import { ranksAnswer, runAnswer, runsAnswer, stepsAnswer, stepsQuery } from './schemas.ts'
import type { Training } from './training-contract.ts'

/** Names in a message; a run may have a hundred. */
const MOST_NAMED = 100

export function readingRoutes(training: Training, now: () => number): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v1/runs',
      summary: 'Training runs, most recently active first',
      answer: runsAnswer,
      errors: ['unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          await training.open()
          return { at: now(), runs: training.runs().map(listed) }
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/runs/:id',
      summary: 'One training run: what it is, its progress and how it ended',
      answer: runAnswer,
      errors: ['unknown_run', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          return found ? { ...summary(found.run, found.progress, now()), logDir: training.logDir } : unknownRun(context)
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/runs/:id/ranks',
      summary: 'The ranks of a run, side by side',
      answer: ranksAnswer,
      errors: ['unknown_run', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          return found ? { id: found.run.id, at: now(), ranks: rankRows(found.progress.ranks) } : unknownRun(context)
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/runs/:id/steps',
      summary: 'The curve of one rank of a run, in columns',
      query: stepsQuery,
      answer: stepsAnswer,
      errors: ['unknown_run', 'invalid_field', 'invalid_parameter', 'invalid_range', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          return found ? course(context, found.run.id, found.progress, context.query as z.infer<typeof stepsQuery>) : unknownRun(context)
        }),
    }),
  ] as readonly Route[]
}

export function unknownRun({ refuse }: Pick<RouteContext, 'refuse'>): Reply {
  return refuse('unknown_run', 'There is no such training run here.', 'Post the run to /api/v1/runs first, then its steps again.')
}

/** What is on a disk that does not answer cannot be read now. */
export async function unlessStuck<T>({ refuse }: Pick<RouteContext, 'refuse'>, work: () => Promise<T>): Promise<T | Reply> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof DiskStuck)) throw error
    return refuse('unavailable', `The run cannot be read now: ${error.message}.`, 'Try again in a few seconds.', {
      'retry-after': '5',
    })
  }
}

function course({ refuse }: Pick<RouteContext, 'refuse'>, id: string, { curves }: Progress, query: z.infer<typeof stepsQuery>): unknown {
  const { fields, from, to } = query
  const { names, ranks } = curves
  if (to !== undefined && from > to) return refuse('invalid_range', `from is ${from} and to is ${to}.`, 'Give the lower step as from.')
  const unknown = fields.filter((field) => !names.includes(field))
  if (unknown.length > 0)
    return refuse('invalid_field', `This run has no ${unknown.slice(0, MOST_NAMED).join(', ')}.`, `It has ${names.join(', ')}.`)
  const rank = query.rank ?? curves.lowest
  const curve = rank === null ? null : curves.of(rank)
  if (curve === null && query.rank !== undefined)
    return refuse(
      'invalid_parameter',
      `Rank ${query.rank} has no curve.`,
      ranks.length === 0 ? 'This run has sent no step yet.' : `These ranks have curves: ${ranks.join(', ')}.`,
    )
  const data = curve?.columns(fields, from, to) ?? [[], [], ...fields.map(() => [])]
  return { id, rank, ranks, fields, available: names, stride: curve?.stride ?? 1, data }
}

/** Without what only the page of one run shows. */
function listed({ run, figures, heardAt }: ListedRun): object {
  const { report, command, processes, recordings, hyperparameters, stacks, ...rest } = run
  const training = figures === null ? null : { ...figures, etaSeconds: etaSeconds(run, figures) }
  return { ...rest, leakLines: leakLinesOf(run), heardAt, hasReport: report !== null, ranks: figures?.ranks ?? 0, training }
}

function summary(run: RunRecord, progress: Progress, at: number): object {
  const { processes, stacks, ...rest } = run
  const ranks = rankRows(progress.ranks).map((row) => ({ ...row, lastSeq: progress.ranks.get(row.rank)?.lastSeq ?? 0 }))
  const figures = progress.figures()
  return {
    ...rest,
    leakLines: leakLinesOf(run),
    hasStacks: stacks.length > 0,
    ranks,
    layers: progress.layers.count,
    training: { ...figures, etaSeconds: etaSeconds(run, figures), time: progress.time(run, at) },
  }
}
