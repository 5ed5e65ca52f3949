/** What the supervisor knows of a source, in whatever process it runs. */
import type { Provenance, Reading, SourceHealth, SourceState } from '../core/model.ts'
import type { DriverFaultKind } from '../core/source-contract.ts'
import type { ProcessUsage, TickMessage } from './messages.ts'
import type { SamplerProcess } from './sampler-process.ts'

export interface Opening {
  readonly source: string
  readonly result: 'opened' | 'absent' | 'failed'
  /** Why it failed; null when it did not. */
  readonly fault: DriverFaultKind | null
  readonly message: string | null
}

export function openingOf(source: string, how: 'opened' | 'absent' | DriverFaultKind, message: string | null): Opening {
  return how === 'opened' || how === 'absent'
    ? { source, result: how, fault: null, message }
    : { source, result: 'failed', fault: how, message }
}

export interface SourceRecord {
  readonly source: string
  state: SourceState
  since: number
  message: string | null
  provenance: Provenance
  lastSampleAt: Reading
  samples: number
  /** In the process that reads it now. */
  skippedTicks: number
  skippedBefore: number
  restarts: number
  /** It was opened at least once, so it had GPUs. */
  hasOpened: boolean
  nextStartAt: Reading
  intervalMs: number
  readMs: Reading
  sampler: SamplerProcess | null
  backoffMs: number
  okSince: number
  timer: NodeJS.Timeout | null
  answer: ((opening: Opening) => void) | null
}

export function newRecord(source: string, intervalMs: number, backoffMs: number, since: number): SourceRecord {
  return {
    source,
    state: 'starting',
    since,
    message: null,
    provenance: 'live',
    lastSampleAt: null,
    samples: 0,
    skippedTicks: 0,
    skippedBefore: 0,
    restarts: 0,
    hasOpened: false,
    nextStartAt: null,
    intervalMs,
    readMs: null,
    sampler: null,
    backoffMs,
    okSince: Number.POSITIVE_INFINITY,
    timer: null,
    answer: null,
  }
}

export function noteTick(record: SourceRecord, { at, skippedTicks, readMs }: TickMessage): void {
  record.samples++
  record.lastSampleAt = at
  record.skippedTicks = skippedTicks
  record.readMs = readMs
}

/** No process reads it any more. */
export function takeOut(record: SourceRecord): void {
  record.sampler = null
  record.skippedBefore += record.skippedTicks
  record.skippedTicks = 0
}

/** The clock was set: times are moved with it, so that what is counted from them stays true. */
export function moveTimes(record: SourceRecord, byMs: number): void {
  record.since += byMs
  record.okSince += byMs
  if (record.lastSampleAt !== null) record.lastSampleAt += byMs
  if (record.nextStartAt !== null) record.nextStartAt += byMs
}

export function healthOf(record: SourceRecord, deadlineMs: number, usage: ProcessUsage | undefined): SourceHealth {
  const { source, state, since, message, provenance, lastSampleAt, samples, restarts, nextStartAt, intervalMs, readMs } = record
  return {
    ...{ source, state, since, message, provenance, lastSampleAt, samples },
    skippedTicks: record.skippedBefore + record.skippedTicks,
    ...{ restarts, nextStartAt, pid: record.sampler?.pid ?? null, intervalMs, deadlineMs },
    cpuSeconds: usage?.cpuSeconds ?? null,
    residentBytes: usage?.residentBytes ?? null,
    readMs,
  }
}

export function totalUsage(usages: Iterable<ProcessUsage>, cpuSecondsBefore: number): ProcessUsage {
  let cpuSeconds = cpuSecondsBefore
  let residentBytes = 0
  for (const usage of usages) {
    cpuSeconds += usage.cpuSeconds
    residentBytes += usage.residentBytes
  }
  return { cpuSeconds, residentBytes }
}
