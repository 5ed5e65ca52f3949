/** The shapes of the answers. Strict here, so that a test sees an undescribed field; open in /openapi.json, so that fields can be added. */
import { z } from 'zod'
import { alertsEventSchema, alertViewSchema } from '../core/alert-schema.ts'
import { GPU_EVENTS, GPU_INFO, GPU_READINGS, GPU_STATES, PROVENANCES } from '../core/fields/gpu.ts'
import { HOST_READINGS } from '../core/fields/host.ts'
import { GPU_PROCESS_TYPES, PROCESS_INFO, PROCESS_SHARES } from '../core/fields/process.ts'
import { findingSchema } from '../core/finding-schema.ts'
import type { GpuView, HistoryAnswer, SelfUsage, SeriesField, SinkHealth } from '../core/kinds.ts'
import type { GpuEvent, GpuInfo, GpuProcess, GpuSample, HostSample, ProcessInfo, ProcessView, SourceHealth } from '../core/model.ts'
import { GPU_FIELDS, HOST_FIELDS } from '../core/record.ts'
import { ERRORS, type ErrorBody, type ErrorCode } from '../core/route-errors.ts'
import { columnShape, factShape } from './field-schema.ts'

const reading = z.number().nullable()
const text = z.string().nullable()
const at = z.number().describe('Epoch milliseconds')
const provenance = z.enum(PROVENANCES)

const seriesField = z.enum([...GPU_FIELDS, ...HOST_FIELDS] as [SeriesField, ...SeriesField[]])

const gpuInfo: z.ZodType<GpuInfo> = z.strictObject(factShape(GPU_INFO))

const gpuProcessShape = {
  pid: z.number().int(),
  type: z.enum(GPU_PROCESS_TYPES),
  memoryUsedBytes: reading,
  ...columnShape(PROCESS_SHARES),
}
const gpuProcess: z.ZodType<GpuProcess> = z.strictObject(gpuProcessShape)

const gpuSample: z.ZodType<GpuSample> = z.strictObject({
  kind: z.literal('gpu'),
  at,
  gpu: z.string(),
  state: z.enum(GPU_STATES),
  stateReason: text,
  slowAt: reading,
  ...columnShape(GPU_READINGS),
  processes: z.array(gpuProcess).nullable(),
})

const gpuView: z.ZodType<GpuView> = z.strictObject({
  info: gpuInfo,
  sample: gpuSample.nullable(),
  ageMs: reading,
  live: z.boolean(),
})

const processInfo: z.ZodType<ProcessInfo> = z.strictObject({
  pid: z.number().int(),
  ...columnShape(PROCESS_INFO),
  command: z.array(z.string()).nullable(),
})

const processView: z.ZodType<ProcessView> = z.strictObject({ ...gpuProcessShape, gpu: z.string(), info: processInfo.nullable() })

const hostSample: z.ZodType<HostSample> = z.strictObject({
  kind: z.literal('host'),
  at,
  hostname: z.string(),
  ...columnShape(HOST_READINGS),
  processes: z.array(processInfo),
  processesReason: text,
})

const gpuEvent: z.ZodType<GpuEvent> = z.strictObject({
  kind: z.literal('event'),
  at,
  gpu: text,
  event: z.enum(GPU_EVENTS),
  code: reading,
  message: z.string(),
  origin: z.string(),
})

const sourceHealth = z.strictObject({
  source: z.string(),
  state: z.enum(['starting', 'ok', 'not_responding', 'crashed', 'failed', 'ended']),
  since: at,
  message: text,
  provenance,
  lastSampleAt: reading,
  samples: z.number(),
  skippedTicks: z.number(),
  restarts: z.number(),
  nextStartAt: reading,
  pid: reading,
  intervalMs: z.number(),
  deadlineMs: z.number(),
  cpuSeconds: reading,
  residentBytes: reading,
  readMs: reading,
}) satisfies z.ZodType<SourceHealth>

const column = z.array(reading)

const historyAnswer: z.ZodType<HistoryAnswer> = z.strictObject({
  gpu: z.string(),
  fields: z.array(seriesField),
  stepMs: z.number().describe('0: every sample as it was taken'),
  data: z.array(column).describe('Times (epoch milliseconds) first, then one column per field; null is a gap'),
  min: z.array(column).nullable(),
  max: z.array(column).nullable(),
})

const sinkHealth: z.ZodType<SinkHealth> = z.strictObject({ name: z.string(), dropped: z.number(), reason: text })

const selfUsage: z.ZodType<SelfUsage> = z.strictObject({
  version: z.string(),
  startedAt: at,
  runId: z.string(),
  pid: z.number().int(),
  cpuSeconds: z.number(),
  residentBytes: z.number(),
})

const streamHealth = z.strictObject({
  clients: z.number().int(),
  maxClients: z.number().int(),
  droppedClients: z.number().int(),
  bufferedEvents: z.number().int(),
  bufferedBytes: z.number().int(),
  lastEventId: z.string(),
})
export type StreamHealth = z.infer<typeof streamHealth>

const health = z.strictObject({
  status: z.enum(['ok', 'degraded']),
  at,
  hostname: z.string(),
  sources: z.array(sourceHealth.extend({ ageMs: reading })),
  sinks: z.array(sinkHealth),
  self: selfUsage,
  stream: streamHealth,
  rooms: z.record(z.string(), z.unknown()).describe('The state of other parts of the agent, such as the store'),
})
export type Health = z.infer<typeof health>

const errorAnswer: z.ZodType<ErrorBody> = z.strictObject({
  error: z.strictObject({
    code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
    message: z.string(),
    hint: text,
  }),
})

export const SCHEMAS = {
  GpuInfo: gpuInfo,
  GpuProcess: gpuProcess,
  GpuSample: gpuSample,
  GpuView: gpuView,
  ProcessInfo: processInfo,
  ProcessView: processView,
  HostSample: hostSample,
  GpuEvent: gpuEvent,
  SourceHealth: sourceHealth,
  Finding: findingSchema,
  AlertView: alertViewSchema,
  AlertsEvent: alertsEventSchema,
  HistoryAnswer: historyAnswer,
  SinkHealth: sinkHealth,
  SelfUsage: selfUsage,
  StreamHealth: streamHealth,
  Health: health,
  Error: errorAnswer,
  Alive: z.strictObject({ status: z.literal('ok'), name: z.literal('gpuwarden'), version: z.string() }),
  Readiness: z.strictObject({ status: z.enum(['ready', 'not_ready']), reasons: z.array(z.string()) }),
  Gpus: z.strictObject({ at, gpus: z.array(gpuView) }),
  Processes: z.strictObject({ at, processes: z.array(processView) }),
  Host: z.strictObject({ at, host: z.strictObject({ sample: hostSample, ageMs: z.number(), live: z.boolean() }).nullable() }),
  Events: z.strictObject({ at, events: z.array(gpuEvent) }),
  Findings: z.strictObject({ at, findings: z.array(findingSchema) }),
} as const satisfies Readonly<Record<string, z.ZodType>>
