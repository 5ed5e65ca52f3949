/** The shapes of what the routes of the alerts take and give. Strict, so that a test sees a field that nobody described. */
import { z } from 'zod'
import type { PastAlert } from '../core/alert-contract.ts'
import { alertViewSchema } from '../core/alert-schema.ts'
import { findingSubjectSchema, severitySchema } from '../core/finding-schema.ts'
import type { ChannelHealth } from './alerts-api.ts'
import { DELIVERY_RESULTS } from './courier.ts'
import { MATCHER_NAMES, MATCHER_OPERATORS } from './matcher.ts'
import { KEPT } from './past-alerts.ts'
import type { Silence } from './silences.ts'

const reading = z.number().nullable()
const text = z.string().nullable()
const at = z.number().describe('Epoch milliseconds')

const pastAlert: z.ZodType<PastAlert> = z.strictObject({
  fingerprint: z.string(),
  detector: z.string(),
  subject: findingSubjectSchema,
  severity: severitySchema,
  message: z.string(),
  since: at.describe('When the problem began; epoch milliseconds'),
  firedAt: at,
  resolvedAt: at,
  simulated: z.boolean(),
  acknowledgedBy: text,
})

const matcher = z.strictObject({ name: z.enum(MATCHER_NAMES), operator: z.enum(MATCHER_OPERATORS), value: z.string() })

export const silenceView: z.ZodType<Silence> = z.strictObject({
  id: z.string(),
  matchers: z.array(matcher),
  createdAt: at,
  until: at,
  comment: z.string(),
  by: z.string(),
})

const counts = z.strictObject(Object.fromEntries(DELIVERY_RESULTS.map((result) => [result, z.number()])) as Record<string, z.ZodNumber>)

const channelHealth = z.strictObject({
  channel: z.string(),
  results: counts as unknown as z.ZodType<ChannelHealth['results']>,
  depth: z.number().describe('Notices and messages that wait'),
  oldestAgeMs: reading,
  attempts: z.number().describe('Failed attempts to send the first message'),
  lastFault: text,
  problem: text.describe('Why nothing arrives there now, such as the answer that refused it; null when it does'),
}) satisfies z.ZodType<ChannelHealth>

export const ANSWERS = {
  alerts: z.strictObject({ at, alerts: z.array(alertViewSchema) }),
  history: z.strictObject({ at, alerts: z.array(pastAlert).describe('Newest first') }),
  silences: z.strictObject({ at, silences: z.array(silenceView) }),
  channels: z.strictObject({
    at,
    channels: z.array(channelHealth),
  }),
  tested: z.strictObject({
    channel: z.string(),
    ok: z.boolean(),
    answer: z.string().describe("The server's own words, secrets masked"),
    retry: z.boolean().describe('Whether another attempt can help'),
    idle: z.boolean().describe('Nothing was sent because nobody is subscribed, such as a browser; not an error'),
  }),
  unsilenced: z.strictObject({ id: z.string() }),
} as const

export const historyQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(KEPT).optional().describe(`How many of the newest; all (${KEPT}) by default`),
  from: z.coerce.number().optional().describe('Epoch milliseconds: those that were firing at or after this time'),
  to: z.coerce.number().optional().describe('Epoch milliseconds: those that began before this time'),
})

/** How long something lasts: until a moment, or this many seconds from now. */
const ending = {
  until: z.number().optional().describe('Epoch milliseconds'),
  seconds: z.number().positive().max(31_536_000).optional().describe('Seconds from now; instead of until'),
}
const by = z.string().max(200).default('').describe('Who asks for it')

export const silenceBody = z.strictObject({
  matchers: z
    .array(z.union([z.string().max(400), z.strictObject({ name: z.string(), operator: z.string(), value: z.string() })]))
    .min(1)
    .max(20)
    .describe('Such as "gpu=0"; all of them must fit'),
  ...ending,
  comment: z.string().max(1000).default(''),
  by,
})

export const acknowledgeBody = z.strictObject({ ...ending, by })

export type Ending = { readonly until?: number | undefined; readonly seconds?: number | undefined }
