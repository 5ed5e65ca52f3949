/** Schemas of an alert and of the alert events of the live stream. Strict, so that a test finds an undescribed field. */
import { z } from 'zod'
import type { AlertsEvent, AlertView } from './alert-contract.ts'
import { findingSchema, severitySchema } from './finding-schema.ts'

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
  mutedBy: z.enum(['silence', 'maintenance', 'acknowledged', 'simulated']).nullable().describe('Why nobody is notified of it now'),
  silence: text.describe('Id of the silence that covers it'),
  told: z.array(z.string()).describe('Channels that were notified that it fires'),
  waiting: z.array(z.string()).describe('Channels with a message about it waiting or on its way'),
  gpuLabel: text.describe('Label of the GPU'),
  unconfirmed: z.boolean().describe('From before the agent started, and not seen since'),
})

export const alertsEventSchema: z.ZodType<AlertsEvent> = z.strictObject({
  type: z.literal('alerts'),
  at,
  alerts: z.array(alertViewSchema).describe('New or changed alerts'),
  gone: z.array(z.string()).describe('Fingerprints of alerts that are not kept anymore'),
  hasMore: z.boolean().describe('More changed than one event holds: ask GET /api/v1/alerts'),
  silencesChanged: z.boolean().describe('Silences were set or ended: see GET /api/v1/silences'),
})
