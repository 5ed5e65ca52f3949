/** The routes of recordings: asking for one, what came of it, and what the SDK sends. */
import { z } from 'zod'
import { printable } from '../core/format.ts'
import { type LineRecording, RECORDING_KINDS, RECORDING_TRIGGERS } from '../core/memory/line-recording.ts'
import type { RecordedLine } from '../core/model.ts'
import { type Route, type RouteContext, route } from '../core/route.ts'
import { unknownRun, unlessStuck } from './reading-routes.ts'
import { FEWEST_STEPS, MOST_STEPS } from './recording-requests.ts'
import type { AskRefusal } from './recordings.ts'
import type { Training } from './training-contract.ts'

const LIMIT_BYTES = 64 * 1024
const MOST_LINES = 10
const RECORDING_ID = /^[A-Za-z0-9]{1,64}$/

const amount = z.number().min(0).nullish()
const text = (longest: number) => z.string().transform((given) => printable(given.slice(0, longest)))

const line = z.object({
  file: text(500),
  line: z.number().int().min(0).nullish(),
  function: text(200).nullish(),
  bytes: z.number().min(0),
  blocks: amount,
  bytes_per_step: amount,
  share: z.number().min(0).max(1).nullish(),
})

const lines = z.array(line).max(MOST_LINES).nullish()

const recordingPost = z.object({
  kind: z.enum(RECORDING_KINDS),
  trigger: z.enum(RECORDING_TRIGGERS).default('hand'),
  rank: z.number().int().min(0).default(0),
  at: z.number().min(0).max(8.64e15).describe('Epoch milliseconds'),
  reason: text(500).nullish().describe('Why nothing was recorded'),
  steps: amount,
  lines,
  holders: lines,
  grown_bytes: z.number().nullish(),
  step_seconds_before: amount,
  step_seconds_during: amount,
  snapshot: z.object({ path: text(4000).nullish(), reason: text(500).nullish() }).nullish(),
})

const askPost = z.strictObject({
  kind: z.enum(RECORDING_KINDS).default('gpu').describe('gpu: PyTorch’s allocator; host: Python objects, with tracemalloc'),
  steps: z
    .number()
    .int()
    .min(FEWEST_STEPS)
    .max(MOST_STEPS)
    .nullish()
    .describe('How many steps; by default as many as fit the time of a step'),
  rank: z.number().int().min(0).nullish().describe('By default the rank that reports next'),
})

const waiting = z.object({
  id: z.string(),
  kind: z.enum(RECORDING_KINDS),
  rank: z.number().nullable(),
  steps: z.number().nullable(),
  trigger: z.enum(RECORDING_TRIGGERS),
  askedAt: z.number(),
  sentAt: z.number().nullable().describe('When the SDK was asked; null: it has not reported since'),
})

const REFUSALS: Readonly<Record<Exclude<AskRefusal, 'unknown'>, readonly [string, string]>> = {
  ended: ['The run is over.', 'Only a run that goes on can record.'],
  cannot: [
    'The run has no SDK that can record.',
    'It takes the Python SDK in the program (gpuwarden.run, or a callback), without GPUWARDEN_NO_RECORDING.',
  ],
  busy: ['The run was asked for another recording, which is not over.', 'Wait for it; GET the same path to see it.'],
}

export function recordingRoutes(training: Training, now: () => number): readonly Route[] {
  const { recordings } = training
  return [
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/recordings',
      summary: 'Asks a run to record for some steps which of its lines keep memory',
      body: askPost,
      answer: waiting,
      errors: ['unknown_run', 'conflict', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          await training.open()
          const { kind, steps, rank } = context.body as z.infer<typeof askPost>
          const asked = recordings.ask(context.params.id ?? '', { kind, steps: steps ?? null, rank: rank ?? null })
          if (asked === 'unknown') return unknownRun(context)
          return typeof asked === 'string' ? context.refuse('conflict', ...REFUSALS[asked]) : asked
        }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/runs/:id/recordings',
      summary: 'Recordings of the lines that keep memory: those that are waited for, and what came of earlier ones, newest first',
      answer: z.object({
        id: z.string(),
        at: z.number(),
        waiting: z.array(waiting),
        recordings: z.array(z.looseObject({ id: z.string() })),
      }),
      errors: ['unknown_run', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          if (!found) return unknownRun(context)
          const { id, recordings: done } = found.run
          return { id, at: now(), waiting: recordings.waiting(id), recordings: done }
        }),
    }),
    route({
      method: 'POST',
      path: '/api/v1/runs/:id/recordings/:recording',
      summary: 'Takes what an SDK recorded; the last eight are kept with the run',
      body: recordingPost,
      bodyLimitBytes: LIMIT_BYTES,
      answer: z.object({ id: z.string().describe('Of the run'), recording: z.string() }),
      errors: ['unknown_run', 'invalid_body', 'unavailable'],
      handler: (context) => unlessStuck(context, () => take(context, training)),
    }),
  ] as readonly Route[]
}

async function take(context: RouteContext, training: Training): Promise<unknown> {
  const { params, body, refuse } = context
  const recording = params.recording ?? ''
  if (!RECORDING_ID.test(recording)) return refuse('invalid_body', 'The id of a recording has letters and digits, at most 64.')
  await training.open()
  const id = params.id ?? ''
  const isKept = await training.recordings.keep(id, recordingOf(recording, body as z.infer<typeof recordingPost>))
  return isKept ? { id, recording } : unknownRun(context)
}

function recordingOf(id: string, said: z.infer<typeof recordingPost>): LineRecording {
  const { kind, trigger, rank, at } = said
  return {
    ...{ id, kind, trigger, rank, at },
    reason: said.reason ?? null,
    steps: said.steps ?? null,
    lines: (said.lines ?? []).map(lineOf),
    holders: (said.holders ?? []).map(lineOf),
    grownBytes: said.grown_bytes ?? null,
    stepSecondsBefore: said.step_seconds_before ?? null,
    stepSecondsDuring: said.step_seconds_during ?? null,
    snapshotPath: said.snapshot?.path ?? null,
  }
}

function lineOf(said: z.infer<typeof line>): RecordedLine {
  return {
    file: said.file,
    line: said.line ?? null,
    function: said.function || null,
    bytes: said.bytes,
    blocks: said.blocks ?? null,
    bytesPerStep: said.bytes_per_step ?? null,
    share: said.share ?? null,
  }
}
