/** The routes of stacks: asking where a run stands, what came of it, and what the SDKs send. */
import { z } from 'zod'
import { printable } from '../core/format.ts'
import { HANG_KINDS } from '../core/hang/hang-verdict.ts'
import type { GroupProgress, RankStacks, ThreadStack } from '../core/hang/rank-stacks.ts'
import { type Route, type RouteContext, route } from '../core/route.ts'
import { unknownRun, unlessStuck } from './reading-routes.ts'
import type { Training } from './training-contract.ts'

const LIMIT_BYTES = 512 * 1024
const LOOK_ID = /^[a-f0-9]{1,64}$/

const text = (longest: number) => z.string().transform((given) => printable(given.slice(0, longest)))
const known = text(200).nullish()
const count = z.number().int().min(0).nullish()

const thread = z.object({
  name: text(200),
  is_main: z.boolean().default(false),
  state: text(8).nullish(),
  syscall: known,
  wchan: known,
  frames: z.array(z.object({ file: text(500), line: z.number().int().min(0), function: text(200) })).max(64),
})

const collective = z.object({
  group: text(200),
  description: known,
  ranks: known,
  last: count,
  completed: count,
  op: known,
  pending: z
    .object({
      seq: count,
      op: text(200),
      is_p2p: z.boolean().nullish(),
      state: known,
      sizes: known,
      dtypes: known,
      seconds: z.number().min(0).nullish(),
    })
    .nullish(),
})

const stacksPost = z.object({
  rank: z.number().int().min(0),
  pid: count,
  at: z.number().min(0).max(8.64e15).describe('Epoch milliseconds'),
  moves: z.boolean().nullish().describe('Whether the main thread moved while it was looked at'),
  phase: known,
  reason: text(500).nullish().describe('Why there are no stacks'),
  threads: z.array(thread).max(64).nullish(),
  collectives: z.array(collective).max(64).nullish().describe('The last collective of each process group, and the first that is not done'),
})

const verdict = z
  .looseObject({
    kind: z.enum(HANG_KINDS),
    sentence: z.string(),
    culprits: z.array(z.number()),
    waiting: z.array(z.number()),
    place: z.string().nullable(),
    isStuck: z.boolean().describe('Nobody moves, and nobody writes, saves or compiles'),
  })
  .nullable()

const lookAnswer = z.object({
  id: z.string(),
  look: z.string().nullable().describe('Id of the look; null: from what is kept with the run'),
  at: z.number().describe('When it began'),
  isOver: z.boolean().describe('No rank is waited for anymore'),
  silentSince: z.number().nullable().describe('When the last step came, if the run has made none for a few step times'),
  verdict,
  ranks: z.array(z.looseObject({ rank: z.number() })),
  notes: z.array(z.string()).describe('Errors and warnings of NCCL itself'),
})

export function stackRoutes(training: Training): readonly Route[] {
  const { standstills } = training
  return [
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/stacks',
      summary: 'Asks all ranks of a run for the stacks of their threads and their last collectives; they answer within a few seconds',
      answer: z.object({ id: z.string(), look: z.string() }),
      errors: ['unknown_run', 'conflict', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          await training.open()
          const id = context.params.id ?? ''
          if (!training.recordOf(id)) return unknownRun(context)
          const order = standstills.ask(id)
          return order
            ? { id, look: order.id }
            : context.refuse('conflict', 'The run is over.', 'GET the same path for what is kept of it.')
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/runs/:id/stacks',
      summary: 'Where the ranks of a run stand: the last look, or what is kept of the last stall',
      answer: lookAnswer,
      errors: ['unknown_run', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          if (!found) return unknownRun(context)
          const { id: look, ...state } = await standstills.stateOf(found.run)
          return { ...state, id: found.run.id, look }
        }),
    }),
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/stacks/:look',
      summary: 'Takes the stacks of one rank from its SDK',
      body: stacksPost,
      bodyLimitBytes: LIMIT_BYTES,
      answer: z.object({ id: z.string().describe('Of the run'), look: z.string() }),
      errors: ['unknown_run', 'invalid_body', 'conflict', 'unavailable'],
      handler: (context) => unlessStuck(context, () => take(context, training)),
    }),
  ] as readonly Route[]
}

async function take(context: RouteContext, training: Training): Promise<unknown> {
  const { params, body, refuse } = context
  const { id = '', look = '' } = params
  if (!LOOK_ID.test(look)) return refuse('invalid_body', 'The id of a look is a hexadecimal number.', 'Use the id of the agent’s answer.')
  await training.open()
  if (!training.recordOf(id)) return unknownRun(context)
  const isTaken = training.standstills.take(id, look, stacksOf(body as z.infer<typeof stacksPost>))
  return isTaken ? { id, look } : refuse('conflict', 'Nobody waits for these stacks anymore.', 'Wait for the next request.')
}

function stacksOf(said: z.infer<typeof stacksPost>): RankStacks {
  return {
    rank: said.rank,
    pid: said.pid ?? null,
    at: said.at,
    from: 'sdk',
    moves: said.moves ?? null,
    phase: said.phase ?? null,
    threads: (said.threads ?? []).map(threadOf),
    collectives: (said.collectives ?? []).map(groupOf),
    reason: said.reason ?? null,
  }
}

function threadOf({ is_main, ...said }: z.infer<typeof thread>): ThreadStack {
  return { ...said, isMain: is_main, state: said.state ?? null, syscall: said.syscall ?? null, wchan: said.wchan ?? null }
}

function groupOf(said: z.infer<typeof collective>): GroupProgress {
  const { group, pending } = said
  return {
    group,
    description: said.description ?? null,
    ranks: said.ranks ?? null,
    last: said.last ?? null,
    completed: said.completed ?? null,
    op: said.op ?? null,
    pending: pending
      ? {
          seq: pending.seq ?? null,
          op: pending.op,
          isP2p: pending.is_p2p ?? false,
          state: pending.state ?? '',
          sizes: pending.sizes ?? '',
          dtypes: pending.dtypes ?? '',
          seconds: pending.seconds ?? null,
        }
      : null,
  }
}
