/** The format of a recording: one JSON object per line, with the columns of the tables in fields/. */
import { type Fact, isAlwaysKnown, nothingKnown, rowsOf, type Scale, unknownFact } from './fields/field.ts'
import { GPU_INFO, GPU_READINGS, type ReadingRow } from './fields/gpu.ts'
import { HOST_READINGS } from './fields/host.ts'
import { PROCESS_INFO, PROCESS_SHARES } from './fields/process.ts'
import { type FigureRow, STEP_FIGURES, type StepFigure } from './fields/step.ts'
import type {
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuReadings,
  GpuSample,
  HostField,
  HostSample,
  ProcessView,
  Provenance,
  Reading,
  TrainingStep,
  TreeMemory,
} from './model.ts'

const MEBIBYTE = 1024 * 1024

/** The numeric columns of a `gpu_metrics` line, in their order, after `timestamp` and `gpu_index`. `memory_percent` is derived. */
export const GPU_COLUMNS = rowsOf<GpuField, ReadingRow>(GPU_READINGS).map(({ field, column, scale, always = false, slow = false }) => ({
  field,
  column,
  scale,
  always,
  slow,
}))
export type GpuColumn = (typeof GPU_COLUMNS)[number]

export const GPU_FIELDS: readonly GpuField[] = GPU_COLUMNS.map(({ field }) => field)

export const SLOW_FIELDS: ReadonlySet<GpuField> = new Set(GPU_COLUMNS.filter(({ slow }) => slow).map(({ field }) => field))

export const NO_READINGS: GpuReadings = nothingKnown(GPU_READINGS)

export const NO_HOST_READINGS = nothingKnown(HOST_READINGS)

/** Every figure of a training step unknown, and a step that tells nothing. */
export const NO_FIGURES = nothingKnown(STEP_FIGURES)
export const NO_STEP: TrainingStep = { kind: 'step', at: 0, run: '', rank: 0, step: 0, ...NO_FIGURES, phaseSeconds: null, custom: null }

/** All facts unknown: the start of a GpuInfo. */
export const NO_FACTS = Object.freeze(
  Object.fromEntries(
    rowsOf<string, Fact>(GPU_INFO).flatMap(({ field, ...fact }) => (isAlwaysKnown(fact) ? [] : [[field, unknownFact(fact)]])),
  ),
) as unknown as Omit<GpuInfo, 'id' | 'index' | 'label' | 'vendor' | 'provenance'>

/** From base units to a column's unit. Ratios keep six decimals, so that reading back gives the same number. */
export function toColumn(value: number, scale: Scale): number {
  switch (scale) {
    case 'percent':
      return Math.round(value * 1e6) / 1e4
    case 'mebibytes':
      return value / MEBIBYTE
    case 'megahertz':
      return value / 1e6
    default:
      return value
  }
}

export function fromColumn(value: number, scale: Scale): number {
  switch (scale) {
    case 'percent':
      return Math.round(value * 1e4) / 1e6
    case 'mebibytes':
      return Math.round(value * MEBIBYTE)
    case 'megahertz':
      return Math.round(value * 1e6)
    default:
      return value
  }
}

export type JsonRecord = Record<string, unknown>

/** used ÷ total, in percent with two decimals; null when either is unknown or the total is 0. */
export function memoryPercent(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : Math.round((used / total) * 1e4) / 100
}

/** One line of `gpu_metrics_*.jsonl`. */
export function gpuRecord(sample: GpuSample, info: GpuInfo | undefined, processes: readonly ProcessView[]): JsonRecord {
  const record: JsonRecord = { timestamp: isoTime(sample.at), gpu_index: info?.index ?? null }
  const slowRead = sample.slowAt === null || sample.slowAt === sample.at
  for (const { column, field, scale, always, slow } of GPU_COLUMNS) {
    const value = sample[field]
    if (column === 'temperature_celsius') record.memory_percent = memoryPercent(sample.memoryUsedBytes, sample.memoryTotalBytes)
    if (value === null) {
      if (always) record[column] = null
    } else if (slowRead || !slow) record[column] = toColumn(value, scale)
  }
  record.gpu_uuid = sample.gpu
  if (info?.name) record.gpu_name = info.name
  if (info?.mig) record.gpu_label = info.label
  if (info) Object.assign(record, notLive(info.provenance))
  if (sample.state !== 'ok') {
    record.state = sample.state
    record.state_reason = sample.stateReason
  }
  record.processes = sample.processes === null ? null : processes.map(processRecord)
  return record
}

export const SHARE_COLUMNS = rowsOf(PROCESS_SHARES)
export const PROCESS_COLUMNS = rowsOf(PROCESS_INFO)

function processRecord(process: ProcessView): JsonRecord {
  const record: JsonRecord = {
    pid: process.pid,
    memory_used_mb: process.memoryUsedBytes === null ? null : process.memoryUsedBytes / MEBIBYTE,
    type: process.type,
  }
  for (const { field, column, scale } of SHARE_COLUMNS) {
    const value = process[field]
    if (value !== null) record[column] = toColumn(value, scale)
  }
  const info = process.info
  if (info)
    for (const { field, column, scale } of PROCESS_COLUMNS) {
      const value = info[field]
      if (value !== null) record[column] = written(value, scale)
    }
  return record
}

export const HOST_COLUMNS = rowsOf(HOST_READINGS)
export const HOST_FIELDS: readonly HostField[] = HOST_COLUMNS.map(({ field }) => field)

/** One line of `host_metrics_*.jsonl`. */
export function hostRecord(sample: HostSample, provenance: Provenance = 'live'): JsonRecord {
  const record: JsonRecord = { timestamp: isoTime(sample.at), hostname: sample.hostname }
  for (const { field, column, scale } of HOST_COLUMNS) record[column] = written(sample[field], scale)
  if (sample.processesReason !== null) record.processes_reason = sample.processesReason
  if (sample.trees) record.trees = sample.trees.map(treeRecord)
  return Object.assign(record, notLive(provenance))
}

function treeRecord({ pid, run, processes, bytes, limit }: TreeMemory): JsonRecord {
  return { pid, run, processes, bytes, ...(limit ? { limit_used_bytes: limit.usedBytes, limit_bytes: limit.limitBytes } : {}) }
}

/** One line of `gpu_events_*.jsonl`. */
export function eventRecord(event: GpuEvent, provenance: Provenance = 'live'): JsonRecord {
  return {
    timestamp: isoTime(event.at),
    gpu_uuid: event.gpu,
    event: event.event,
    code: event.code,
    message: event.message,
    origin: event.origin,
    ...notLive(provenance),
  }
}

/** One line of `gpu_devices_*.jsonl`. */
export function deviceRecord(info: GpuInfo, at: number): JsonRecord {
  return { timestamp: isoTime(at), gpu_index: info.index, ...info }
}

/** NaN and ±Infinity as strings, because JSON has no other way. */
export function jsonNumber(value: Reading): Reading | string {
  return value === null || Number.isFinite(value) ? value : String(value)
}

export const STEP_COLUMNS = rowsOf<StepFigure, FigureRow>(STEP_FIGURES)

/** One line of `training_metrics_*.jsonl`. */
export function stepRecord(step: TrainingStep, provenance: Provenance = 'live'): JsonRecord {
  const record: JsonRecord = { timestamp: isoTime(step.at), step: step.step }
  for (const { field, column, scale } of STEP_COLUMNS) record[column] = written(step[field], scale)
  record.run = step.run
  record.rank = step.rank
  if (step.phaseSeconds) record.phase_seconds = mapNumbers(step.phaseSeconds)
  if (step.custom) record.custom = mapNumbers(step.custom)
  if (step.nonFinite) record.non_finite = { ...step.nonFinite }
  return Object.assign(record, notLive(provenance))
}

function written(value: Reading | string, scale: Scale): Reading | string {
  if (value === null || typeof value === 'string') return value
  return scale === 'any' ? jsonNumber(value) : scale === 'time' ? isoTime(value) : toColumn(value, scale)
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}

/** Simulated or replayed data says so on every line. */
function notLive(provenance: Provenance): { provenance?: Provenance } {
  return provenance === 'live' ? {} : { provenance }
}

function mapNumbers(values: Readonly<Record<string, number>>): JsonRecord {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, jsonNumber(value)]))
}
