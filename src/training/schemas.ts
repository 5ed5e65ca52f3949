/** The shapes of what the training routes take and answer. */
import { z } from 'zod'
import { PROVENANCES } from '../core/fields/gpu.ts'
import { RECORDING_KINDS, RECORDING_TRIGGERS } from '../core/memory/line-recording.ts'
import { parseJson } from '../core/recording/json.ts'
import { TIME_PARTS, type TimePart } from '../core/run-time.ts'
import { CURVE_FIELDS } from './curve.ts'

const LONGEST_NAME = 200
const LONGEST_TEXT = 4096
const MOST_GPUS = 1024

/** Also part of file names. */
export const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

const name = z.string().trim().min(1).max(LONGEST_NAME)
const at = z.number().min(0).max(8.64e15).describe('Epoch milliseconds')
const count = z.number().int().min(0).nullish()
const amount = z.number().min(0).nullish()
const shortText = z.string().max(LONGEST_NAME).nullish()
export const reading = z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]).nullable()

export const runPost = z.object({
  id: z.string().regex(RUN_ID, 'expected letters, digits and . _ : - (at most 128)').nullish(),
  name,
  host: shortText,
  user: shortText,
  pid: count,
  command: z
    .union([z.string(), z.array(z.string())])
    .nullish()
    .describe('The first 4096 characters are kept'),
  git_commit: shortText,
  framework: shortText,
  rank: count.describe('Of the process that reports'),
  hyperparameters: z
    .record(z.string(), z.unknown())
    .nullish()
    .describe('The first 200 are kept; nested ones as `outer.inner`, values of secrets masked'),
  data_loader: z
    .object({ workers: z.number().int().min(0), pinned_memory: z.boolean(), cpus: count })
    .nullish()
    .describe('How the training loads its data; `cpus` that it may use'),
  world_size: count,
  total_steps: z.number().int().min(1).nullish().describe('How many steps the run is planned to have'),
  gpus: z
    .array(z.union([z.number(), z.string().max(LONGEST_NAME)]))
    .max(MOST_GPUS)
    .nullish(),
  started_at: at.nullish(),
  correlation_id: shortText,
  model: z
    .object({
      parameters: amount,
      active_parameters: amount.describe('That work on a token: no embeddings that are only looked up, of experts the chosen ones'),
      flops_per_token: amount.describe('Forward and backward, without what is computed again'),
      flops_per_sample: amount,
      compute_type: shortText.describe('bfloat16, float16, float8, tf32 or float32'),
    })
    .nullish()
    .describe('What the model needs to compute, for the MFU'),
  can_record: z.boolean().nullish().describe('Whether the SDK can record which lines keep memory'),
  can_tell_stacks: z.boolean().nullish().describe('Whether the SDK says where its threads are when it is asked'),
})

export const runEnd = z.object({
  outcome: z.enum(['success', 'oom', 'nan', 'killed', 'failed']),
  message: z.string().nullish().describe('The first 4096 characters are kept'),
  ended_at: at.nullish(),
  rank: count,
})

/** Python writes NaN unquoted, so this is not left to JSON.parse. */
export const runReport = z.string().transform((text, context): Readonly<Record<string, unknown>> => {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  context.addIssue({ code: 'custom', message: 'expected a JSON object' })
  return z.NEVER
})

const step = z.coerce.number().min(0)

export const stepsQuery = z.strictObject({
  rank: z.coerce.number().int().min(0).optional().describe('By default the lowest'),
  from: step.default(0).describe('First step'),
  to: step.optional().describe('Last step'),
  fields: z
    .string()
    .default('loss')
    .transform((text) => text.split(',').filter((field) => field !== ''))
    .pipe(z.array(z.string()).min(1).max(100))
    .describe(`Separated by commas: ${CURVE_FIELDS.join(', ')}, phase:NAME, custom:NAME`),
})

export const signQuery = z.object({
  rank: z.coerce.number().int().min(0).optional().describe('With an empty body: the rank that lives but has no step to report'),
})

export const runPosted = z.object({ id: z.string(), name: z.string(), created: z.boolean() })

export const stepsPosted = z.object({
  run: z.string().describe('Id of the run. `accepted`, `duplicates` and `rejected_count` add up to the steps that were sent'),
  accepted: z.number(),
  duplicates: z.number(),
  last_seq: z.record(z.string(), z.number()).describe('The highest sequence number received, by rank'),
  rejected: z.array(z.object({ line: z.number(), reason: z.string() })),
  rejected_count: z.number(),
  ignored_metrics: z.array(z.string()),
  record: z
    .object({ id: z.string(), kind: z.enum(RECORDING_KINDS), steps: z.number(), trigger: z.enum(RECORDING_TRIGGERS) })
    .optional()
    .describe('Asks the SDK to record which lines keep memory, and to post that to /api/v1/runs/:id/recordings/ID; repeated until it does'),
  stacks: z
    .object({ id: z.string() })
    .optional()
    .describe('Asks the SDK for the stacks of its threads, to be posted to /api/v1/runs/:id/stacks/ID; repeated until it does'),
})

const number = z.number()
const known = z.number().nullable()

const runParts = {
  id: z.string(),
  name: z.string(),
  provenance: z.enum(PROVENANCES).describe('simulated: nobody trains this'),
  host: z.string().nullable(),
  user: z.string().nullable(),
  pid: known,
  framework: z.string().nullable(),
  gpus: z.array(z.string()),
  worldSize: known,
  totalSteps: known.describe('How many steps it is planned to have'),
  outcome: z.string().nullable(),
  message: z.string().nullable(),
  endIsPresumed: z.boolean().describe('Nobody reported the end: its process is gone, or it was silent for too long'),
  startedAt: number,
  endedAt: known,
}

const figures = {
  steps: number.describe('Of all ranks'),
  lastStep: known,
  firstStepAt: known,
  lastStepAt: known,
  loss: reading,
  bestLoss: reading,
  throughputPerSecond: reading,
  meanStepSeconds: reading,
  etaSeconds: known.describe('(totalSteps − lastStep) × meanStepSeconds; null when one of them is not known, or the run is over'),
}

const phaseShares = z
  .array(z.object({ phase: z.string(), ratio: number }))
  .describe('What the time of the steps went to, the rest as "not attributed"; empty where no step had phases')

const seconds = z.object(Object.fromEntries(TIME_PARTS.map((part) => [part, known])) as Record<TimePart, typeof known>)

const time = z
  .object({ wallSeconds: number, goodputRatio: known.describe('productive ÷ wall time'), seconds })
  .describe('What the wall time went to; the parts add up to it, and null is not measured')

const totals = {
  tokensPerSecond: reading,
  samples: reading.describe('Of all ranks; null: not counted'),
  tokens: reading,
}

export const runAnswer = z.looseObject({
  ...runParts,
  layers: number.describe('How many layers of its model were looked at; 0: none (gpuwarden.watch)'),
  training: z.looseObject({ ...figures, ...totals, phaseShares, time }),
})

export const runsAnswer = z.object({
  at: number,
  runs: z.array(
    z.looseObject({
      ...runParts,
      heardAt: number,
      hasReport: z.boolean(),
      ranks: number.describe('How many ranks have sent steps'),
      training: z.looseObject(figures).nullable(),
    }),
  ),
})

export const ranksAnswer = z.object({
  id: z.string(),
  at: number,
  ranks: z.array(
    z.object({
      rank: number,
      pid: known,
      localRank: known,
      lastStep: number,
      lastAt: number,
      steps: number,
      meanStepSeconds: known,
      lastStepSeconds: known,
      recentStepSeconds: known.describe('Of about the last twenty steps'),
      memoryAllocatedBytes: known,
      pipelineStage: known.describe('As the rank says in custom.pipeline_stage'),
      phaseShares,
      behindSteps: number.describe('How many steps the leading rank is ahead'),
      relativeSpeed: known.describe('Median of the others’ recentStepSeconds ÷ its own: 0.5 is half as fast'),
    }),
  ),
})

export const stepsAnswer = z.object({
  id: z.string(),
  rank: known,
  ranks: z.array(number).describe('Ranks that have a curve'),
  fields: z.array(z.string()),
  available: z.array(z.string()).describe('Every field that can be requested'),
  stride: number.describe('1: every step; n: every n-th, and those that are not finite'),
  data: z.array(z.array(reading)).describe('Columns: step, at (epoch ms), then the fields'),
})

export const ended = z.object({ id: z.string(), outcome: z.string().nullable(), endedAt: z.number().nullable() })

export function shorten(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT - 1)}…`
}
