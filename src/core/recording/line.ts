/** Parses the other lines of a recording: the inverse of hostRecord, eventRecord, stepRecord and deviceRecord. */
import type { Fact, FactsOf, FactTable, Mutable } from '../fields/field.ts'
import { GPU_EVENTS, GPU_INFO } from '../fields/gpu.ts'
import type { GpuEvent, GpuInfo, HostSample, TrainingStep, TreeMemory } from '../model.ts'
import { HOST_COLUMNS, type JsonRecord, NO_HOST_READINGS, NO_STEP, STEP_COLUMNS } from '../record.ts'
import { Fields, type LineInput, openLine, type Parsed } from './json.ts'

export interface DeviceLine {
  readonly kind: 'device'
  readonly at: number
  readonly device: GpuInfo
}

/** To be copied as it is: see gpu.ts. */
const UNREAD_HOST: Mutable<HostSample> = { kind: 'host', at: 0, hostname: '', ...NO_HOST_READINGS, processes: [], processesReason: null }

export function parseHostLine(line: LineInput): Parsed<HostSample> {
  const open = openLine(line)
  if (typeof open === 'string') return open
  const { at, fields } = open
  const sample = { ...UNREAD_HOST }
  sample.at = at
  sample.hostname = fields.text('hostname') ?? 'recording'
  sample.processesReason = fields.text('processes_reason')
  fields.fill(HOST_COLUMNS, sample)
  const trees = treesOf(open.record.trees)
  if (trees.length > 0) return fields.bad ? 'wrong_type' : { ...sample, trees }
  return fields.bad ? 'wrong_type' : sample
}

function treesOf(given: unknown): readonly TreeMemory[] {
  return (Array.isArray(given) ? (given as unknown[]) : []).flatMap((one) => {
    const { pid, run, processes, bytes, limit_used_bytes: used, limit_bytes: most } = (one ?? {}) as Record<string, unknown>
    if (typeof pid !== 'number' || typeof processes !== 'number' || typeof bytes !== 'number') return []
    const limit = typeof used === 'number' && typeof most === 'number' ? { usedBytes: used, limitBytes: most } : null
    return [{ pid, run: typeof run === 'string' ? run : null, processes, bytes, limit }]
  })
}

export function parseEventLine(line: LineInput): Parsed<GpuEvent> {
  const open = openLine(line)
  if (typeof open === 'string') return open
  const { at, fields } = open
  const name = fields.choice('event', GPU_EVENTS, null)
  if (name === null) return 'wrong_type'
  const event: GpuEvent = {
    kind: 'event',
    at,
    gpu: fields.text('gpu_uuid'),
    event: name,
    code: fields.finite('code') ?? fields.finite('dropped'),
    message: fields.text('message') ?? fields.text('reason') ?? '',
    origin: fields.text('origin') ?? 'recording',
  }
  return fields.bad ? 'wrong_type' : event
}

/** `run`: name for lines without one. */
export function parseStepLine(line: LineInput, run = 'recording'): Parsed<TrainingStep> {
  const open = openLine(line)
  if (typeof open === 'string') return open
  const { at, fields } = open
  const step: Mutable<TrainingStep> = { ...NO_STEP }
  step.at = at
  step.run = fields.text('run') ?? run
  step.rank = fields.finite('rank') ?? 0
  step.step = fields.required('step')
  step.phaseSeconds = fields.numbers('phase_seconds')
  step.custom = fields.numbers('custom')
  const { layer, part } = fields.texts('non_finite')
  if (layer !== undefined && (part === 'weights' || part === 'activations' || part === 'gradients')) step.nonFinite = { layer, part }
  fields.fill(STEP_COLUMNS, step)
  return fields.bad ? 'wrong_type' : step
}

export const UNKNOWN_VENDOR = 'unknown'

export function parseDeviceLine(line: LineInput): Parsed<DeviceLine> {
  const open = openLine(line)
  if (typeof open === 'string') return open
  const { at, record } = open
  const known = { ...record, label: record.label ?? String(record.index), vendor: record.vendor ?? UNKNOWN_VENDOR }
  const device = readFacts(known, GPU_INFO)
  return device === null ? 'wrong_type' : { kind: 'device', at, device }
}

/** null when one of the facts has a wrong type. */
function readFacts<Table extends FactTable>(record: JsonRecord, table: Table): FactsOf<Table> | null {
  const fields = new Fields(record)
  const facts = Object.fromEntries(Object.entries<Fact>(table).map(([name, fact]) => [name, readFact(fields, name, fact)]))
  return fields.bad ? null : (facts as FactsOf<Table>)
}

function readFact(fields: Fields, name: string, fact: Fact): unknown {
  switch (fact.is) {
    case 'name':
      return fields.requiredText(name)
    case 'count':
      return fields.required(name)
    case 'reading':
      return fields.finite(name)
    case 'text':
      return fields.text(name)
    case 'flag':
      return fields.flag(name)
    case 'texts':
      return fields.texts(name)
    case 'choice':
      return fields.choice(name, fact.of, fact.missing ?? null)
    case 'object': {
      const object = fields.object(name)
      const facts = object === null ? null : readFacts(object, fact.of)
      if (object !== null && facts === null) fields.bad = true
      return facts
    }
    case 'list':
      return fields.objects(name).flatMap((object) => {
        const facts = readFacts(object, fact.of)
        if (facts === null) fields.bad = true
        return facts ?? []
      })
  }
}
