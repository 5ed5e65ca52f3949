/** The shapes of an alert and of what the live stream tells of alerts. Strict, so that a test sees a field that nobody described. */
import { z } from 'zod'
import { findingSchema, severitySchema } from './finding-schema.ts'
import type { AlertsEvent, AlertView } from './kinds.ts'

const reading = z.number().nullable()
const text = z.string().nullable()
const at = z.number().describe('Epoch milliseconds')

export const alertViewSchema: z.ZodType<AlertView> = z.strictObject({
  fingerprint: z.string(),
  state: z.enum(['pending', 'firing', 'resolved']),
  finding: findingSchema,
  firedAt: reading,
  resolvedAt: reading,
  flapping: z.boolean(),
  simulated: z.boolean(),
  acknowledged: z.strictObject({ at, until: at, by: z.string(), severity: severitySchema }).nullable(),
  mutedBy: z.enum(['silence', 'maintenance', 'acknowledged', 'simulated']).nullable().describe('Why nobody is told of it at present'),
  silence: text.describe('Id of the silence that covers it'),
  told: z.array(z.string()).describe('Channels that were told that it fires'),
  waiting: z.array(z.string()).describe('Channels for which a message about it waits, or is on its way'),
  gpuLabel: text.describe('What the GPU is called here'),
  unconfirmed: z.boolean().describe('From before the agent was started, and not seen again since'),
})

export const alertsEventSchema: z.ZodType<AlertsEvent> = z.strictObject({
  type: z.literal('alerts'),
  at,
  alerts: z.array(alertViewSchema).describe('Those that are new or changed, as they are now'),
  gone: z.array(z.string()).describe('Fingerprints of those that are no longer kept'),
  hasMore: z.boolean().describe('More changed at once than one event tells: ask GET /api/v1/alerts'),
  silencesChanged: z.boolean().describe('Silences were set, or ended: see GET /api/v1/silences'),
})
