/** The shapes of what the routes of this room take and answer. */
import { z } from 'zod'
import { parseJson } from '../recording/json.ts'
import { CURVE_FIELDS } from './curve.ts'

const LONGEST_NAME = 200
const LONGEST_TEXT = 4096
const MOST_GPUS = 1024

/** Also part of file names. */
export const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

const name = z.string().trim().min(1).max(LONGEST_NAME)
const at = z.number().min(0).max(8.64e15).describe('Epoch milliseconds')
const count = z.number().int().min(0).nullish()
const shortText = z.string().max(LONGEST_NAME).nullish()
const reading = z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]).nullable()

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
  world_size: count,
  gpus: z
    .array(z.union([z.number(), z.string().max(LONGEST_NAME)]))
    .max(MOST_GPUS)
    .nullish(),
  started_at: at.nullish(),
  correlation_id: shortText,
})

export const runEnd = z.object({
  outcome: z.enum(['success', 'oom', 'nan', 'killed', 'failed']),
  message: z.string().nullish().describe('The first 4096 characters are kept'),
  ended_at: at.nullish(),
  rank: count,
})

/** Python writes NaN as it is, so this is not left to JSON.parse. */
export const runReport = z.string().transform((text, context): Readonly<Record<string, unknown>> => {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  context.addIssue({ code: 'custom', message: 'expected a JSON object' })
  return z.NEVER
})

export const stepsQuery = z.strictObject({
  from: z.coerce.number().min(0).default(0).describe('First step'),
  fields: z
    .string()
    .default('loss')
    .transform((text) => text.split(',').filter((field) => field !== ''))
    .pipe(z.array(z.enum(CURVE_FIELDS)).min(1))
    .describe(`With commas: ${CURVE_FIELDS.join(', ')}`),
})

export const runPosted = z.object({ id: z.string(), name: z.string(), created: z.boolean() })

export const stepsPosted = z.object({
  accepted: z.number(),
  duplicates: z.number(),
  last_seq: z.record(z.string(), z.number()).describe('The highest sequence number received, by rank'),
  rejected: z.array(z.object({ line: z.number(), reason: z.string() })),
  rejected_count: z.number(),
  ignored_metrics: z.array(z.string()),
})

export const runAnswer = z.object({
  id: z.string(),
  name: z.string(),
  outcome: z.string().nullable(),
  startedAt: z.number(),
  endedAt: z.number().nullable(),
  training: z.looseObject({ steps: z.number(), loss: reading }),
})

export const runsAnswer = z.object({ at: z.number(), runs: z.array(z.looseObject({ id: z.string(), name: z.string() })) })

export const stepsAnswer = z.object({
  id: z.string(),
  fields: z.array(z.string()),
  stride: z.number().describe('1: every step of the lowest rank; n: every n-th'),
  data: z.array(z.array(reading)).describe('Columns: step, at (epoch ms), then the fields'),
})

export const ended = z.object({ id: z.string(), outcome: z.string().nullable(), endedAt: z.number().nullable() })

export function shorten(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT - 1)}…`
}
