/** Schema of a finding. Strict, so that a test finds an undescribed field. */
import { z } from 'zod'
import type { Finding, FindingSubject } from './model.ts'

const reading = z.number().nullable()
const text = z.string().nullable()
const at = z.number().describe('Epoch milliseconds')

export const severitySchema = z.enum(['info', 'warning', 'critical'])

export const findingSubjectSchema: z.ZodType<FindingSubject> = z.strictObject({
  host: text,
  gpu: text,
  gpuIndex: reading,
  pid: reading,
  user: text,
  run: text,
  rank: reading,
})

export const findingSchema: z.ZodType<Finding> = z.strictObject({
  fingerprint: z.string(),
  detector: z.string(),
  provenance: z.enum(['live', 'simulated', 'replay']),
  subject: findingSubjectSchema,
  severity: severitySchema,
  state: z.enum(['active', 'resolved']),
  at,
  since: at,
  message: z.string(),
  evidence: z.record(z.string(), z.union([z.number(), z.string(), z.boolean(), z.null()])),
  confidence: z.number(),
  advice: z.array(z.string()),
  predictedAt: reading,
  predictedEarliestAt: reading,
  predictedLatestAt: reading,
  riskLevel: z.enum(['low', 'medium', 'high', 'critical']).nullable(),
})
