/**
 * Memory that is held and not used: 1 GiB or more, and no work at all for half an hour. That is information first: whoever serves
 * requests rests and works again. It becomes a warning when the rest is long for this holder.
 */
import type { DetectorKind } from '../core/detector-contract.ts'
import { formatBytes, formatDuration } from '../core/format.ts'
import type { Finding, GpuSample, ProcessView, Reading } from '../core/model.ts'
import { UTILIZATION_CHART } from './charts.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, type WatchedGpu, watchGpus } from './gpu-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

/** `pid` null: the GPU as a whole, where the process list is unavailable. */
interface Holder {
  readonly pid: number | null
  idleFromMs: number
  seenMs: number
  user: string | null
  /** How often it worked again after a rest. */
  returns?: number
}

type Watched = WatchedGpu<Holder[]>

const HOLDER_CAP = 128
/** A rest that counts as one. */
const REST_MS = 5 * 60_000
/** Whoever came back from so many rests serves requests … */
const RETURNS = 3
/** … and is forgotten only when a whole day brought none: nights and weekends' evenings are quiet everywhere. */
const SERVER_WARNING_MS = 24 * 3_600_000
/** All others are forgotten after this many times the time of the finding: a meal, a meeting. */
const WARNING_TIMES = 4

export const idleHolding: DetectorKind<Thresholds<'idleHolding'>> = {
  name: 'idle_holding',
  about:
    'A process holds GPU memory but has not used the GPU for half an hour: a warning after two hours, or after a day where it serves requests.',
  severities: ['info', 'warning'],
  inputs: ['gpu', 'device'],
  charts: [UTILIZATION_CHART],
  defaults: THRESHOLDS.idleHolding,
  create: (options) =>
    watchGpus<Holder[]>('idle_holding', {
      initial: () => [],
      sample(gpu, sample, processes, book) {
        let findings: readonly Finding[] = NO_FINDINGS
        if (sample.processes === null) findings = look(gpu, null, sample.memoryUsedBytes, sample.utilizationRatio, sample, book, options)
        else
          for (const process of processes)
            findings = both(
              findings,
              look(gpu, process, process.memoryUsedBytes, workOf(process, processes, sample), sample, book, options),
            )
        return both(findings, farewell(gpu, sample, book))
      },
    }),
}

/** How busy a process is; null when several share the GPU and the driver does not separate them. */
function workOf(process: ProcessView, processes: readonly ProcessView[], sample: GpuSample): Reading {
  if (sample.utilizationRatio === 0) return 0
  if (process.smRatio !== null) return process.smRatio
  return processes.length === 1 ? sample.utilizationRatio : null
}

function look(
  gpu: Watched,
  process: ProcessView | null,
  memoryBytes: Reading,
  work: Reading,
  sample: GpuSample,
  book: FindingBook,
  options: Thresholds<'idleHolding'>,
): readonly Finding[] {
  const pid = process?.pid ?? null
  let holder = gpu.state.find((one) => one.pid === pid)
  if (!holder) {
    if (gpu.state.length >= HOLDER_CAP) gpu.state.shift()
    holder = { pid, idleFromMs: gpu.time.ms, seenMs: gpu.time.ms, user: null }
    gpu.state.push(holder)
  }
  holder.seenMs = gpu.time.ms
  holder.user = process?.info?.user ?? holder.user
  const subjectParts = { pid, user: holder.user }
  // Unknown is not idle: only a reading of zero counts.
  if (work !== 0 || memoryBytes === null || memoryBytes < options.memoryBytes) {
    if (work !== null && work > 0 && gpu.time.ms - holder.idleFromMs >= REST_MS) holder.returns = (holder.returns ?? 0) + 1
    holder.idleFromMs = gpu.time.ms
    if (book.size === 0 || work === null) return NO_FINDINGS
    const why = work > 0 ? 'is working again' : 'has freed its memory'
    return book.resolve(book.key(subjectOfGpu(gpu, subjectParts)), sample.at, `${named(pid, gpu)} ${why}.`)
  }
  const idleMs = gpu.time.ms - holder.idleFromMs
  if (idleMs < options.minutes * 60_000) return NO_FINDINGS
  const subject = subjectOfGpu(gpu, subjectParts)
  const serves = (holder.returns ?? 0) >= RETURNS
  const severity = idleMs >= (serves ? SERVER_WARNING_MS : WARNING_TIMES * options.minutes * 60_000) ? 'warning' : 'info'
  if (!book.due(book.key(subject), sample.at, severity)) return NO_FINDINGS
  const owner = holder.user === null ? '' : ` of ${holder.user}`
  return book.raise(subject, sample.at, {
    severity,
    since: sample.at - idleMs,
    message: `${named(pid, gpu)}${owner} holds ${formatBytes(memoryBytes)} but has not used the GPU for ${formatDuration(idleMs)}.`,
    evidence: {
      memory_used_bytes: memoryBytes,
      idle_seconds: Math.round(idleMs / 1000),
      per_process: pid !== null && process?.smRatio !== null,
    },
    confidence: 0.9,
    advice: ['Ask its owner to stop it or free the memory: it may be a forgotten notebook kernel or a crashed run.'],
  })
}

function named(pid: number | null, gpu: Watched): string {
  return pid === null ? gpuName(gpu) : `Process ${pid} on ${gpuName(gpu)}`
}

function farewell(gpu: Watched, sample: GpuSample, book: FindingBook): readonly Finding[] {
  let findings: readonly Finding[] = NO_FINDINGS
  for (let index = gpu.state.length - 1; index >= 0; index--) {
    const holder = gpu.state[index]
    if (!holder || holder.seenMs === gpu.time.ms || gpu.time.ms - holder.seenMs < 1000) continue
    gpu.state.splice(index, 1)
    if (book.size > 0) {
      const key = book.key(subjectOfGpu(gpu, { pid: holder.pid }))
      findings = both(findings, book.resolve(key, sample.at, `${named(holder.pid, gpu)} has ended.`))
    }
  }
  return findings
}
